"""The store types."""
