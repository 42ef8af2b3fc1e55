"""The command line: options in, one answer out, every error with its exit code."""
