"""Kafka Streams: where its stores are, and which changelog offset each of them holds.

    STATE_DIR/APPLICATION/.lock                        held while the application runs
    STATE_DIR/APPLICATION/TASK/.checkpoint             offsets to 4.2; taken over by 4.3 and newer
    STATE_DIR/APPLICATION/TASK/.checkpoint_STORE       offset of a custom store, from 4.3
    STATE_DIR/APPLICATION/TASK/STORE.position          positions in the input topics, to 4.2
    STATE_DIR/APPLICATION/TASK/rocksdb/STORE/          key-value and versioned stores
    STATE_DIR/APPLICATION/TASK/STORE/STORE.START/      a segment of a window or session store
    STATE_DIR/APPLICATION/global/rocksdb/STORE/        global stores

A TASK is ``SUBTOPOLOGY_PARTITION``, or ``__NAME__/SUBTOPOLOGY_PARTITION`` in a named topology.
"""

from snapstore.layouts.kafka_streams.layout import KafkaStreamsLayout
from snapstore.layouts.kafka_streams.options import KafkaStreamsOptions

__all__ = ["KafkaStreamsLayout", "KafkaStreamsOptions"]
