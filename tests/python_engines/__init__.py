"""Real applications of Python engines, against a real broker."""
