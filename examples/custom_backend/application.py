"""A small application with such a store: it counts words and keeps the counts.

    python application.py BOOTSTRAP STATE_DIR WORDS [SECONDS]

At its start it reads the records of its changelog that its store lacks, and says how many. Then it
writes a record to the changelog for each of WORDS made-up words, less those that it has counted
before, and applies it to its store together with its offset. SECONDS it waits between two words.
"""

import sys
import time
from pathlib import Path

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from snapstore_sqlite.store import Application, Store

PARTITIONS = 2
TOPIC = "shop-counts-changelog"


def recover(store: Store, partition: int, bootstrap: str) -> int:
    """Apply what the changelog holds and the store lacks; return how many records that was."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "shop", "auto.offset.reset": "error"}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), timeout=30)
        first = following(store, partition)
        consumer.assign([TopicPartition(TOPIC, partition, first)])
        read = 0
        while following(store, partition) < end:
            message = consumer.poll(30)
            if message is None or message.error() is not None:
                raise RuntimeError(f"the changelog cannot be read: {message}")
            apply(store, message)
            read += 1
        return read
    finally:
        consumer.close()


def count(store: Store, partition: int, number: int, producer: Producer) -> None:
    """Count one word, or forget it, and keep what the changelog has accepted."""
    word = b"a rather long word, number %04d of a thousand" % (number * 7919 % 1000)
    seen = store.get(word)
    value = None if number % 11 == 10 else b"%d" % (1 if seen is None else int(seen) + 1)

    def delivered(error: object, message: Message) -> None:
        if error is not None:
            raise RuntimeError(f"not accepted: {error}")
        apply(store, message)

    producer.produce(TOPIC, value, word, partition, on_delivery=delivered)
    producer.flush()


def apply(store: Store, message: Message) -> None:
    changelog = f"{message.topic()}:{message.partition()}"
    store.apply({message.key(): message.value()}, changelog, message.offset())


def following(store: Store, partition: int) -> int:
    """Return the offset of the record that the store lacks first."""
    applied = store.applied(f"{TOPIC}:{partition}")
    return 0 if applied is None else applied + 1


def run(bootstrap: str, state_dir: Path, words: int, seconds: float) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    with Application(state_dir, "shop") as application:
        stores = [application.store(partition, "counts") for partition in range(PARTITIONS)]
        for partition, store in enumerate(stores):
            print(f"{recover(store, partition, bootstrap)} records recovered", flush=True)
        for number in range(words):
            for partition, store in enumerate(stores):
                if number >= following(store, partition):
                    count(store, partition, number, producer)
            time.sleep(seconds)
        print("done", flush=True)
        producer.flush()


if __name__ == "__main__":
    bootstrap, state_dir, words, *pause = sys.argv[1:]
    run(bootstrap, Path(state_dir), int(words), float(pause[0]) if pause else 0.0)
