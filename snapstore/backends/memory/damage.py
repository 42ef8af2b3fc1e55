"""Damage to files that have not been stored yet is damage to the source."""

from collections.abc import Iterator
from contextlib import contextmanager

from snapstore.errors import IntegrityError, SourceDamagedError


@contextmanager
def damage_of_the_source() -> Iterator[None]:
    """Turn what the reader of pair files says of a damaged one into SourceDamagedError."""
    try:
        yield
    except IntegrityError as error:
        raise SourceDamagedError(error.message, hint=error.hint, **error.facts) from error
