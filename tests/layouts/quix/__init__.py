"""Tests of the layout `quix`."""
