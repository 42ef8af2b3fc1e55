"""Snapshots of stream-processing state stores, taken from outside the application."""

__version__ = "0.1.0"
