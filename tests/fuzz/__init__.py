"""Bytes that nobody wrote: every decoder answers with errors of ours, and with no other."""
