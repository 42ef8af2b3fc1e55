"""Programs that are killed, and what the next one makes of what they left."""
