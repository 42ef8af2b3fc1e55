"""State in memory."""
