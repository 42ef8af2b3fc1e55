"""Pair files."""
