"""The face of the library."""
