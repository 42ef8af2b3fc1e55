"""Hosts that are not as one would like: nothing to write to, no home, no entry for the user."""
