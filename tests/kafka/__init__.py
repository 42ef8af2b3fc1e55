"""Changelogs on a real broker."""
