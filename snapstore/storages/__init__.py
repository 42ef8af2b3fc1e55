"""Bytes by key: one module per kind of storage."""
