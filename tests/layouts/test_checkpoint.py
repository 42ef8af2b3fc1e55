"""The `.checkpoint` file is read as Kafka reads it, or refused with the place of the fault."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapstore.errors import SourceDamagedError
from snapstore.layouts.kafka_streams.checkpoint import (
    lines_passed_over,
    on_passed_over,
    parse_checkpoint,
    render_checkpoint,
)
from snapstore.model.identity import ChangelogPartition

PATH = Path("0_3/.checkpoint")
A, B = ChangelogPartition("app-a-changelog", 3), ChangelogPartition("app-b-changelog", 3)


@pytest.mark.parametrize(
    ("why", "content", "expected"),
    [
        ("no entries", b"0\n0\n", {}),
        ("one entry", b"0\n1\napp-a-changelog 3 70\n", {A: 70}),
        ("G01: beyond 32 bits", b"0\n1\nt 10 2147483648\n", {("t", 10): 2147483648}),
        ("G01: beyond floats", b"0\n1\nt 10 9007199254740993\n", {("t", 10): 9007199254740993}),
        ("the greatest long", b"0\n1\nt 0 9223372036854775807\n", {("t", 0): 2**63 - 1}),
        (
            "G02: -4 is not an offset",
            b"0\n2\napp-a-changelog 3 -4\napp-b-changelog 3 1500\n",
            {A: None, B: 1500},
        ),
        ("G05: CR LF", b"0\r\n1\r\nt 0 5\r\n", {("t", 0): 5}),
        ("CR alone", b"0\r1\rt 0 5\r", {("t", 0): 5}),
        ("no end of line at the end", b"0\n1\nt 0 5", {("t", 0): 5}),
        ("several spaces and a tab", b"0\n1\nt  0\t5\n", {("t", 0): 5}),
        ("a topic with dots and a hyphen", b"0\n1\norders.v2-x 1 5\n", {("orders.v2-x", 1): 5}),
        ("H12: another negative number", b"0\n2\nt 0 -1\nu 0 7\n", {("u", 0): 7}),
        ("H12: nothing but such a line", b"0\n1\nt 0 -5\n", {}),
        ("H12: a negative partition", b"0\n2\nt -1 5\nu 0 7\n", {("u", 0): 7}),
        ("H12: one partition twice that counts once", b"0\n1\nt 0 5\nt 0 6\n", {("t", 0): 6}),
        ("H12: spaces at the end of a line", b"0\n1\nt 0 5 \n", {("t", 0): 5}),
        ("a plus sign, as Java reads it", b"+0\n1\nt 0 +5\n", {("t", 0): 5}),
    ],
)
def test_what_kafka_reads_is_read_alike(
    why: str, content: bytes, expected: dict[ChangelogPartition | tuple[str, int], int | None]
) -> None:
    wanted = {
        key if isinstance(key, ChangelogPartition) else ChangelogPartition(*key): offset
        for key, offset in expected.items()
    }
    assert parse_checkpoint(content, PATH) == wanted


@pytest.mark.parametrize(
    ("why", "content", "line", "text"),
    [
        ("empty file", b"", 1, None),
        ("version only", b"0\n", 2, None),
        ("version is no number", b"x\n0\n", 1, "'x'"),
        ("count is no number", b"0\nmany\n", 2, "'many'"),
        ("G04: two fields", b"0\n1\nT 0\n", 3, "'T 0'"),
        ("G04: one field", b"0\n1\naa\n", 3, "'aa'"),
        ("four fields", b"0\n1\na b 0 5\n", 3, "'a b 0 5'"),
        ("a blank line", b"0\n1\nt 0 5\n\n", 4, "''"),
        ("a space before the topic", b"0\n1\n t 0 5\n", 3, "' t 0 5'"),
        ("partition is no number", b"0\n1\nt p 5\n", 3, "'p'"),
        ("partition beyond an int", b"0\n1\nt 2147483648 5\n", 3, "'2147483648'"),
        ("offset is no number", b"0\n1\nt 0 5.0\n", 3, "'5.0'"),
        ("offset in other digits", "0\n1\nt 0 \u0665\n".encode(), 3, "'\u0665'"),
        ("offset beyond a long", b"0\n1\nt 0 9223372036854775808\n", 3, "'9223372036854775808'"),
        ("more digits than any number", b"0\n1\nt 0 " + b"9" * 5000 + b"\n", 3, None),
        ("announces more than there is", b"0\n2\nt 0 5\n", 2, "'2'"),
        ("announces less than there is", b"0\n1\nt 0 5\nu 0 5\n", 2, "'1'"),
        ("one partition twice", b"0\n2\nt 0 5\nt 0 6\n", 4, "'t 0 6'"),
        ("not UTF-8", b"0\n1\n\xff 0 5\n", 3, None),
        ("a quote in the text", b"0\n1\nit's\n", 3, '"it\'s"'),
    ],
)
def test_a_fault_is_named_with_path_line_and_text_in_quotes(
    why: str, content: bytes, line: int, text: str | None
) -> None:
    with pytest.raises(SourceDamagedError) as caught:
        parse_checkpoint(content, PATH)
    assert caught.value.message.startswith(f"{PATH}, line {line}: ")
    assert caught.value.facts == {"path": str(PATH), "line": line}
    if text is not None:
        assert caught.value.message.endswith(text)


def test_g03_another_version_is_refused_by_file_and_number() -> None:
    with pytest.raises(SourceDamagedError) as caught:
        parse_checkpoint(b"1\n1\napp-a-changelog 0 5\n", PATH)
    assert str(PATH) in caught.value.message
    assert "version 1" in caught.value.message


def test_what_is_written_is_sorted_and_ends_every_line() -> None:
    assert (
        render_checkpoint({B: 1500, A: None, ChangelogPartition("app-a-changelog", 10): 7})
        == b"0\n3\napp-a-changelog 3 -4\napp-a-changelog 10 7\napp-b-changelog 3 1500\n"
    )


@given(
    st.dictionaries(
        st.builds(
            ChangelogPartition,
            st.text("abcXYZ019._-", min_size=1, max_size=20),
            st.integers(0, 2**31 - 1),
        ),
        st.none() | st.integers(0, 2**63 - 1),
        max_size=8,
    )
)
def test_what_is_written_is_read_back(offsets: dict[ChangelogPartition, int | None]) -> None:
    assert parse_checkpoint(render_checkpoint(offsets), PATH) == offsets


def test_h12_lines_that_are_passed_over_are_told_by_number_and_text() -> None:
    (line,) = lines_passed_over(b"0\n2\napp-a-changelog 3 -1\napp-b-changelog 3 7\n", PATH)
    assert line.changelog == A
    assert on_passed_over(line, PATH).startswith(
        f"{PATH}, line 3: Kafka Streams passes over 'app-a-changelog 3 -1'"
    )
