"""The examples are run, or checked as far as this machine can."""
