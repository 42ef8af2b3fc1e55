"""The suites of snapstore.testing, run by everything that is built in."""
