"""What a pair file says of itself."""

from typing import Annotated, Literal

import msgspec

from snapstore.errors import FormatUnsupportedError, ManifestInvalidError
from snapstore.model.store import ChangelogPosition

FORMAT = 1

Kind = Literal["base", "delta"]


class PairHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The header of one file; ``snapstore.pairs`` tells what its fields mean."""

    format: int = FORMAT
    kind: Kind
    number: Annotated[int, msgspec.Meta(ge=1, le=999_999_999_999)]
    previous: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")] | None
    positions: tuple[ChangelogPosition, ...]

    def __post_init__(self) -> None:
        if (self.kind == "base") != (self.previous is None):
            raise ValueError("a delta has a predecessor, and a base has none")
        changelogs = [position.changelog for position in self.positions]
        if len(set(changelogs)) != len(changelogs):
            raise ValueError("a changelog partition is named twice")
        if any(position.applied_offset < 0 for position in self.positions):
            raise ValueError("an applied offset is negative")

    @property
    def name(self) -> str:
        """The name that the file must have."""
        return f"{self.number:012}-{self.kind}.pairs"


class _Format(msgspec.Struct):
    format: int


def encode_header(header: PairHeader) -> bytes:
    return msgspec.json.encode(header)


def decode_header(body: bytes, name: str) -> PairHeader:
    """Read a header. Raises FormatUnsupportedError for a newer one, ManifestInvalidError."""
    try:
        written = msgspec.json.decode(body, type=_Format).format
        if written > FORMAT:
            raise FormatUnsupportedError(
                f"{name} has format {written}, and this snapstore reads up to {FORMAT}",
                hint="upgrade snapstore",
                format=written,
            )
        return msgspec.json.decode(body, type=PairHeader)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ManifestInvalidError(f"the header of {name} is damaged: {error}", file=name) from (
            error
        )
