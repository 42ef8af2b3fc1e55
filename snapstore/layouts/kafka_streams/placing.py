"""Where a store would lie of which there are no files: all that is known of it is configured."""

from pathlib import Path

from snapstore.errors import NotReplayableError
from snapstore.layouts.kafka_streams.names import FROM_4_3, ROCKSDB
from snapstore.layouts.kafka_streams.options import KafkaStreamsOptions, StoreRules
from snapstore.layouts.kafka_streams.tasks import IN_MEMORY, KEY_VALUE, SEGMENTED
from snapstore.model.identity import StoreId
from snapstore.model.store import StoreLocation


def place(
    store: StoreId,
    task_dir: Path,
    generation: str | None,
    layout: str,
    options: KafkaStreamsOptions,
) -> StoreLocation:
    """Return the place that files of such a store would have in a task directory.

    Raises NotReplayableError when nothing says what kind of store it is, or which generation of
    Kafka Streams is to open it.
    """
    rules = options.rules.get(store.store, StoreRules())
    if not (rules.in_memory or rules.format or rules.keys):
        raise NotReplayableError(
            f"{store} has no files, and nothing says what kind of store it is",
            hint=f"configure stores.{store.store}.in_memory, or its format (and keys)",
            store=str(store),
        )
    if rules.in_memory:
        # No application opens its files, so any generation will do.
        generation = generation or FROM_4_3
    if generation is None:
        raise NotReplayableError(
            f"{store} has no files, and no other store of {store.application} tells which version "
            "of Kafka Streams is to open them",
            hint="take a snapshot of another store of the application first",
            store=str(store),
        )
    segmented = rules.keys is not None and not rules.in_memory
    kind = SEGMENTED if segmented else KEY_VALUE
    return StoreLocation(
        store=store,
        layout=layout,
        backend="rocksdb",
        store_type=IN_MEMORY if rules.in_memory else kind,
        generation=generation,
        task_dir=task_dir,
        root=store.store if segmented else f"{ROCKSDB}/{store.store}",
    )
