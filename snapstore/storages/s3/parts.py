"""Decide how a file is cut into the parts of a multipart upload."""

from collections.abc import Iterator

import msgspec

from snapstore.errors import StorageError
from snapstore.storages.s3.options import LARGEST_PUT, MIB


class Part(msgspec.Struct, frozen=True):
    """One part: its number from 1, and the bytes from ``start`` to before ``stop``."""

    number: int
    start: int
    stop: int


class PartPlan(msgspec.Struct, frozen=True):
    """Parts of ``part_size`` bytes each, the last one with the rest."""

    size: int
    part_size: int

    def __len__(self) -> int:
        return -(-self.size // self.part_size)

    def __iter__(self) -> Iterator[Part]:
        for index in range(len(self)):
            start = index * self.part_size
            yield Part(index + 1, start, min(start + self.part_size, self.size))


def plan_parts(size: int, *, part_size: int, max_parts: int) -> PartPlan:
    """Return at most ``max_parts`` parts: of ``part_size``, or larger if those were too many.

    Larger parts are whole MiB. Raises StorageError when even parts of 5 GiB, the most a server
    takes, are too many.
    """
    if size > part_size * max_parts:
        part_size = -(-size // (max_parts * MIB)) * MIB
    if part_size > LARGEST_PUT:
        raise StorageError(
            f"a file of {size} bytes does not fit into {max_parts} parts of at most 5 GiB",
            hint="raise repository.options.max_parts if the server takes more",
            size=size,
            max_parts=max_parts,
        )
    return PartPlan(size, part_size)
