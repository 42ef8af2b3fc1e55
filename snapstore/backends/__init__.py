"""One package per store type: capture, install, scan."""
