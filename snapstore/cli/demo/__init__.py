"""A demonstration that needs nothing but this package and the extra ``demo``.

``state.tar.xz`` is what a Kafka Streams 4.4.0 application left after a clean close: task 0_1 and
1_1 of it, with key-value, window and session stores.
"""
