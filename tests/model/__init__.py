"""The values and rules."""
