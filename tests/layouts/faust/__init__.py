"""Tests of the layout `faust`."""
