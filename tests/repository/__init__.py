"""Tests of the on-storage format."""
