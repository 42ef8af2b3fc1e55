"""Pair files: what is written is read, and nothing else is."""

import random
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapstore.errors import FormatUnsupportedError, IntegrityError
from snapstore.model.identity import ChangelogPartition
from snapstore.model.store import BytesSource, ChangelogPosition
from snapstore.pairs.decode import read_pairs, read_summary
from snapstore.pairs.encode import encode
from snapstore.pairs.header import PairHeader
from snapstore.ports import Pair

POSITIONS = (ChangelogPosition(ChangelogPartition("orders", 3), 41),)
BASE = PairHeader(kind="base", number=7, previous=None, positions=POSITIONS)
DELTA = PairHeader(kind="delta", number=8, previous="ab" * 32, positions=POSITIONS)
SOME: list[Pair] = [(b"", b"empty key"), (b"a", b""), (b"b", None), (b"b\0", b"x" * 70_000)]

pairs = st.dictionaries(st.binary(max_size=9), st.none() | st.binary(max_size=40), max_size=40)


def written(header: PairHeader, content: Iterable[Pair]) -> bytes:
    return b"".join(encode(header, content))


def read(body: bytes) -> list[Pair]:
    return list(read_pairs(BytesSource(body), "a file"))


class Dribbling(BytesSource):
    """Gives three bytes at a time."""

    def pread(self, length: int, position: int) -> bytes:
        return super().pread(min(length, 3), position)


@given(pairs)
def test_what_is_written_is_read(content: dict[bytes, bytes | None]) -> None:
    body = written(DELTA, sorted(content.items()))
    assert read(body) == sorted(content.items())
    summary = read_summary(BytesSource(body), "a file")
    assert (summary.header, summary.pairs, summary.size) == (DELTA, len(content), len(body))
    assert bytes.fromhex(summary.id) == body[-32:]


def test_a_source_may_give_few_bytes_at_a_time() -> None:
    content = SOME[:3]
    assert list(read_pairs(Dribbling(written(DELTA, content)), "a file")) == content


def test_the_same_pairs_make_the_same_bytes() -> None:
    assert written(DELTA, SOME) == written(DELTA, iter(SOME))


def test_a_file_is_named_by_its_number_and_kind() -> None:
    assert (BASE.name, DELTA.name) == ("000000000007-base.pairs", "000000000008-delta.pairs")


@pytest.mark.parametrize("cut", [0, 1, 7, 8, 11, 12, 40, -1, -32, -33, -44, -45])
def test_a_file_that_was_cut_is_refused(cut: int) -> None:
    with pytest.raises(IntegrityError):
        read(written(DELTA, SOME[:3])[:cut])


def test_every_flipped_bit_is_noticed() -> None:
    body = written(DELTA, SOME[:3])
    for position in range(len(body)):
        for bit in range(8):
            spoilt = bytearray(body)
            spoilt[position] ^= 1 << bit
            with pytest.raises(IntegrityError):
                read(bytes(spoilt))


def test_bytes_after_the_end_are_refused() -> None:
    body = written(DELTA, SOME[:3])
    for tail in (b"\0", body[-44:], body):
        with pytest.raises(IntegrityError):
            read(body + tail)


@settings(max_examples=300)
@given(st.binary(max_size=300))
def test_garbage_is_damage_and_nothing_worse(body: bytes) -> None:
    for start in (b"", b"SNAPAIRS", written(DELTA, SOME[:3])[:-50]):
        with pytest.raises(IntegrityError):
            read(start + body)


def test_files_spoilt_in_many_places_are_damage_and_nothing_worse() -> None:
    chance = random.Random(7)
    body = written(DELTA, SOME[:3])
    for _ in range(3000):
        spoilt = bytearray(body)
        for _ in range(chance.randint(1, 8)):
            place = chance.randrange(len(spoilt))
            match chance.randrange(3):
                case 0:
                    spoilt[place] = chance.randrange(256)
                case 1:
                    del spoilt[place : place + chance.randrange(9)]
                case _:
                    spoilt[place:place] = chance.randbytes(chance.randrange(9))
        if bytes(spoilt) != body:
            with pytest.raises(IntegrityError):
                read(bytes(spoilt))


def test_a_newer_format_is_told_from_damage() -> None:
    newer = PairHeader(format=2, kind="base", number=1, previous=None, positions=())
    with pytest.raises(FormatUnsupportedError, match="format 2"):
        read(written(newer, []))


@pytest.mark.parametrize(
    ("header", "content", "message"),
    [
        (DELTA, [(b"b", b""), (b"a", b"")], "ascend"),
        (DELTA, [(b"a", b""), (b"a", None)], "ascend"),
        (BASE, [(b"a", None)], "deletions"),
    ],
)
def test_what_no_reader_would_take_is_not_written(
    header: PairHeader, content: list[Pair], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        written(header, content)


@pytest.mark.parametrize(
    "header",
    [
        pytest.param({"kind": "base", "previous": "ab" * 32}, id="a base that builds on a file"),
        pytest.param({"kind": "delta", "previous": None}, id="a delta that builds on nothing"),
        pytest.param(
            {"positions": (ChangelogPosition(ChangelogPartition("t", 0), -1),)},
            id="a negative offset",
        ),
        pytest.param({"positions": POSITIONS * 2}, id="a changelog partition twice"),
    ],
)
def test_a_header_that_contradicts_itself_is_refused(header: dict[str, object]) -> None:
    fields: dict[str, object] = {"kind": "base", "number": 1, "previous": None, "positions": ()}
    with pytest.raises(ValueError, match=r"."):
        PairHeader(**{**fields, **header})  # type: ignore[arg-type]
