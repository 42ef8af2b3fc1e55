"""How databases are written: as Kafka Streams makes them (RocksDBStore.java, 4.0 to 4.3).

What is written here is read, and written on, by the application: universal compaction, blocks of
4 KiB without compression in format 6, Bloom filters of 10 bits a key.

What is only written goes into memtables that are sorted when they are flushed, by RocksDB's own
thread: that leaves the caller a fifth of the work. Looking up a key there would sort each time.
"""

from rocksdict import (
    BlockBasedOptions,
    Cache,
    DBCompactionStyle,
    DBCompressionType,
    MemtableFactory,
    Options,
)

OFFSETS = "offsets"

_BLOCK_BYTES = 4096
_FORMAT_VERSION = 6
_BLOOM_BITS = 10
_MEMTABLE_BYTES = 6 << 20
_CACHE_BYTES = 8 << 20
_CACHE_BYTES_LOOKED_UP = 32 << 20
_OFFSETS_MEMTABLE_BYTES = 1 << 20
_MEMTABLES = 3
_BACKGROUND_JOBS = 2
_READAHEAD_BYTES = 512 << 10
"""Of each table that is compacted; without it 2 MiB."""


def database_options(*, looked_up: bool) -> Options:
    """Return the options of a database and of its family ``default``.

    ``looked_up``: keys are looked up while others are written.
    """
    options = family_options("default", looked_up=looked_up)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_atomic_flush(True)
    options.set_allow_concurrent_memtable_write(looked_up)
    options.set_max_background_jobs(_BACKGROUND_JOBS)
    options.set_compaction_readahead_size(_READAHEAD_BYTES)
    options.set_keep_log_file_num(1)
    return options


def family_options(family: str, *, looked_up: bool) -> Options:
    """Return the options of one family; the offsets are few and get no filter."""
    options = Options(raw_mode=True)
    options.set_compression_type(DBCompressionType.none())
    if family == OFFSETS:
        options.set_write_buffer_size(_OFFSETS_MEMTABLE_BYTES)
        return options
    blocks = BlockBasedOptions()
    blocks.set_block_size(_BLOCK_BYTES)
    blocks.set_format_version(_FORMAT_VERSION)
    blocks.set_bloom_filter(_BLOOM_BITS, False)
    # Else the index and the filter of every table stay in memory, whatever the size of the store.
    blocks.set_cache_index_and_filter_blocks(True)
    blocks.set_block_cache(Cache(_CACHE_BYTES_LOOKED_UP if looked_up else _CACHE_BYTES))
    options.set_block_based_table_factory(blocks)
    options.set_optimize_filters_for_hits(True)
    options.set_compaction_style(DBCompactionStyle.universal())
    options.set_write_buffer_size(_MEMTABLE_BYTES)
    options.set_max_write_buffer_number(_MEMTABLES)
    if not looked_up:
        options.set_memtable_factory(MemtableFactory.vector())
    return options
