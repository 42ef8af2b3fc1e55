"""Random histories of many hosts, checked after every step."""
