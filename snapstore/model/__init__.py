"""Pure values and rules: no input or output, no clock, no third-party driver."""
