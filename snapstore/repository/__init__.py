"""The format: what a repository holds, key by key.

    snapstore.json                                   the marker
    snapstore.copy.json                              the same, for a repair
    blobs/<2 hex>/<sha256>                           bytes, named by their SHA-256
    blobs/<2 hex>/<sha256>.<run>                     the same, stored anew by that run
    manifests/<2 hex>/<snapshot id>.json.zst         the files of one snapshot
    catalog/<application>/<task>/<store>/<order>-<time>-<snapshot id>.json
    pins/<snapshot id>                               this snapshot is kept by all retention
    condemned/<2 hex>/<blob name>                    this blob is to be deleted
    swept/<time>-<run>-<number>.json                 blobs that a sweep found gone
    removed/<snapshot id>                            this snapshot was taken out on purpose
    quarantine/<run>/<key>                           what a repair took away
    leases/<work>/<number>                           who prunes or repairs just now
    leases/clock-..., leases/probe-...               gone within seconds

A folder has two more of its own, which are no objects: ``.unfinished`` for files that have no name
yet, and ``.reserve``, 64 small files whose room is for the marks of a delete or a prune on a disk
that is full.

A repository is whatever lies below one URL (``file:///...``, ``s3://bucket/prefix``), and nothing
else may lie there. No object is ever rewritten. Keys are relative, never begin with ``/`` and hold
no ``//``. Names that people gave are percent-encoded UTF-8, one name one part: letters, digits,
``.``, ``_`` and ``-`` stay as they are, all else becomes ``%XX`` (upper case), ``.`` and ``..``
become ``%2E`` and ``%2E%2E``. Every listing uses a prefix that ends in ``/``.

JSON is UTF-8 without blanks, its fields sorted, times in RFC 3339 UTC, bytes in base64. Each
document carries ``format``, now 1. A reader refuses a higher one and passes over fields that it
does not know.

**Marker.** ``id`` (32 hex digits, chosen at random) names the repository wherever it is moved.
``uploads`` is ``checked_by_storage`` or ``read_back``: who proves that bytes arrived as sent. A run
that took longer than ``longest_run_s`` publishes nothing, so a sweep that waits longer knows that
whoever could not see its marks has ended.

**Blobs** hold the content of one file as it is: not compressed, so that a table is shared between
snapshots, stores and applications. A reader checks the hash.

**Manifests** are zstd-compressed JSON. The SHA-256 of the JSON, before compression, is the snapshot
id. ``description`` says what it is of and how it was captured; ``files`` lists name (relative to
the task directory), size, mode, ``sha256``, and either ``blob``, the name of the blob, or
``inline``, the bytes of a small file.

**Catalog entries** are the description again, with sizes, so that most questions need no manifest.
In the key, ``<order>`` is the applied offset in 20 digits; for a store with several changelog
partitions the sum of their applied offsets followed by ``x`` and their number (it grows with the
store; it is no offset); for a store without a changelog ``none``, filled up with ``-`` to 20.
``<time>`` is the capture time, ``20260504T120000.000Z``. The newest snapshot is the one with the
highest order, then the latest time: clocks differ and go back, a changelog does not.

**Writing.** Blobs, manifest, catalog entry, in this order, each with put-if-absent. The entry is
the commit: before it there is no snapshot, only bytes that nothing names. Two writers never want
the same entry, because the id covers run and capture time.

**Deleting.** A snapshot goes with its entry; before that ``removed/<snapshot id>`` says that this
is meant, so that no repair brings it back. Bytes go in two phases: a sweep marks a blob that no
manifest of the catalog names by putting ``condemned/<2>/<name>``; a later one, more than
``longest_run_s`` and a margin after (a quarter of it, an hour at most) by the storage's clock,
reads the catalog afresh and deletes the blob if it is still unnamed. A condemned name is dead: a
writer that finds the mark stores the bytes as ``<sha256>.<run>``. It stays dead after its blob is
gone: the next sweep notes the names that are gone in ``swept/...``, and only one that comes another
such time later takes the marks away, when no sweeper can be left that saw the blob. No sweeper
works longer than ``longest_run_s``. Blobs that are lost or of a wrong size are condemned too, so
that later snapshots do not rely on them.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from snapstore.repository.blobs import BlobWriter, StoredBlob, read_blob
    from snapstore.repository.catalog import Catalog, Listing
    from snapstore.repository.condemned import Marks, SweptRecord
    from snapstore.repository.hash_cache import HashCache
    from snapstore.repository.leases import Lease, Leases
    from snapstore.repository.manifests import Manifests
    from snapstore.repository.marker import Marker
    from snapstore.repository.repository import Repository

# Each part is imported when it is first asked for: a listing needs no lease and no cache.
_HOMES = {
    "blobs": ("BlobWriter", "StoredBlob", "read_blob"),
    "catalog": ("Catalog", "Listing"),
    "condemned": ("Marks", "SweptRecord"),
    "hash_cache": ("HashCache",),
    "leases": ("Lease", "Leases"),
    "manifests": ("Manifests",),
    "marker": ("Marker",),
    "repository": ("Repository",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "BlobWriter",
    "Catalog",
    "HashCache",
    "Lease",
    "Leases",
    "Listing",
    "Manifests",
    "Marker",
    "Marks",
    "Repository",
    "StoredBlob",
    "SweptRecord",
    "read_blob",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'snapstore.repository' has no attribute {name!r}")
    return getattr(importlib.import_module(f"snapstore.repository.{home}"), name)
