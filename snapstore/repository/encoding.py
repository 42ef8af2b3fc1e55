"""JSON as the repository keeps it: one spelling for one value, and a careful reader."""

from typing import TypeVar

import msgspec

from snapstore.errors import FormatUnsupportedError, ManifestInvalidError

FORMAT = 1

T = TypeVar("T")

_encoder = msgspec.json.Encoder(order="sorted")


class _Format(msgspec.Struct):
    format: int


def encode(value: msgspec.Struct) -> bytes:
    """Return the only encoding of a value: sorted keys, no blanks."""
    return _encoder.encode(value)


def decode(body: bytes, type_: type[T], *, what: str) -> T:
    """Read what ``encode`` wrote; fields that this version does not know are passed over.

    ``what`` names the object in messages. Raises FormatUnsupportedError when a newer snapstore
    wrote it, ManifestInvalidError when nobody did.
    """
    try:
        written = msgspec.json.decode(body, type=_Format).format
        if written > FORMAT:
            raise FormatUnsupportedError(
                f"{what} has format {written}, and this snapstore reads up to {FORMAT}",
                hint="upgrade snapstore",
                format=written,
            )
        return msgspec.json.decode(body, type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ManifestInvalidError(f"{what} is damaged: {error}") from error
