"""Pair files: the sorted pairs of an in-memory store, in immutable files that build on one another.

A store is a folder of such files. The newest *base* holds every pair of one moment; each *delta*
after it holds what changed since the file that it names as its predecessor. Laid over one another,
the newest first, they are the store. No file is ever rewritten::

    000000000007-base.pairs
    000000000008-delta.pairs

All numbers are big-endian::

    file      magic "SNAPAIRS" | u32 size of header | header | u32 CRC-32 of header | block* | end
    header    JSON: {"format": 1, "kind": "base" or "delta", "number": 8, "previous": ID or null,
              "positions": [{"changelog": {"topic": ..., "partition": 0}, "applied_offset": 41}]}
    block     u32 size of payload, not 0 | payload | u32 CRC-32 of payload
    payload   one or more of: u32 size of key | u32 size of value | key | value
              a size of value of 0xFFFFFFFF says that the key was deleted; in deltas only
    end       u32 0 | u64 number of pairs | ID

The ID is the SHA-256 of everything before it. ``number`` counts the files of a store and is also in
the name; ``previous`` is the ID of the file that a delta builds on, null in a base. Keys ascend
strictly within a file. ``positions`` says how far the store had got in each changelog partition:
every record up to and including ``applied_offset`` is in this file and those that it builds on.
A reader refuses whatever is not exactly so; unknown fields of the header are passed over.
"""
