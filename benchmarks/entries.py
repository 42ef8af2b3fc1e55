"""What a database holds, in one hash: nothing of snapstore takes part in it."""

import hashlib
from pathlib import Path

from rocksdict import AccessType, Options, Rdict

_POSITION = ("offsets", b"position")
"""What queries have seen (KIP-796): Kafka Streams forgets it when it rebuilds a store."""


def entries_digest(database: Path) -> tuple[int, str]:
    """Return how many entries there are in all families, and the SHA-256 over all of them."""
    options = Options(raw_mode=True)
    families = sorted(Rdict.list_cf(str(database), options))
    rdict = Rdict(
        str(database),
        options,
        dict.fromkeys(families, options),
        AccessType.read_only(error_if_log_file_exist=False),
    )
    digest, count = hashlib.sha256(), 0
    for family in families:
        digest.update(b"%d:%s" % (len(family), family.encode()))
        column = rdict if family == "default" else rdict.get_column_family(family)
        pairs = column.iter()
        pairs.seek_to_first()
        while pairs.valid():
            key, value = pairs.key(), pairs.value()
            pairs.next()
            if (family, key) != _POSITION:
                digest.update(b"%d:%s%d:%s" % (len(key), key, len(value), value))
                count += 1
        pairs.status()
    rdict.close()
    return count, digest.hexdigest()
