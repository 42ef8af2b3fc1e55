"""Measure snapstore beside what people would use instead, on the same data and the same server.

    python -m benchmarks [--quick] [--only NAME ...] [--turns N] [--work DIR] [--server-dir DIR]

Contenders take turns (A B A B ...), so that what else the machine does falls on all of them alike.
Medians are compared. Every restored tree is compared with its source.
"""
