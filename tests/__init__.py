"""The tests; they mirror the package, and `support` holds what they share."""
