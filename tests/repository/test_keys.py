"""How keys are spelled."""

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapstore.errors import ManifestInvalidError, UnsafePathError
from snapstore.model.identity import StoreId
from snapstore.model.listing import ListedSnapshot
from snapstore.repository import keys

SNAPSHOT_ID = "0123456789abcdef" * 4
CAPTURED_AT = datetime(2026, 5, 4, 12, 0, 1, 234000, tzinfo=UTC)
NAMES = st.text(min_size=1).filter(lambda text: not any(0xD800 <= ord(c) < 0xE000 for c in text))


def listed(store: StoreId, offset_sum: int | None, changelogs: int = 1) -> ListedSnapshot:
    return ListedSnapshot(
        store=store,
        id=SNAPSHOT_ID,
        captured_at=CAPTURED_AT,
        offset_sum=offset_sum,
        changelogs=changelogs,
    )


def test_an_entry_says_everything_that_choosing_needs() -> None:
    assert keys.entry(listed(StoreId("orders", "0_1", "counts"), 2147483648)) == (
        f"catalog/orders/0_1/counts/00000000002147483648-20260504T120001.234Z-{SNAPSHOT_ID}.json"
    )


@pytest.mark.parametrize(
    "name",
    [
        *("c++", "a b", "100%", "x%2By", "é", "a=b&c", ".", "..", "a/b", "__x__/0_1", "~"),
        *("file_with$special@char", "a;b", "back\\slash", "\u200e", "\u3000", "a\x08b"),
    ],
)
def test_every_name_comes_back_as_it_was_g84_g85(name: str) -> None:
    part = keys.segment(name)
    assert re.fullmatch(r"[A-Za-z0-9._%-]+", part)
    assert part not in (".", "..")
    assert keys.name_of(part) == name


@given(NAMES, NAMES, NAMES, st.integers(0, 2**63 - 1), st.integers(1, 50))
def test_an_entry_is_taken_apart_into_what_it_was_made_of(
    application: str, task: str, store: str, offset_sum: int, changelogs: int
) -> None:
    made = listed(StoreId(application, task, store), offset_sum, changelogs)
    key = keys.entry(made)
    assert keys.parse_entry(key) == made
    assert "//" not in key
    assert key.startswith(keys.store_prefix(made.store))


def test_a_store_without_a_changelog_has_an_entry_too() -> None:
    made = listed(StoreId("orders", "0_1", "lookup"), None, 0)
    assert keys.parse_entry(keys.entry(made)) == made


def test_a_name_that_is_not_utf_8_keeps_its_bytes() -> None:
    name = b"caf\xe9".decode("utf-8", "surrogateescape")
    assert keys.segment(name) == "caf%E9"
    assert keys.name_of("caf%E9") == name


def test_times_of_any_zone_are_spelled_in_utc() -> None:
    abroad = CAPTURED_AT.astimezone(timezone(timedelta(hours=-5)))
    made = ListedSnapshot(
        store=StoreId("a", "0", "s"), id=SNAPSHOT_ID, captured_at=abroad, offset_sum=1, changelogs=1
    )
    assert "20260504T120001.234Z" in keys.entry(made)


def test_task_0_1_is_no_prefix_of_task_0_10_g83() -> None:
    short = keys.store_prefix(StoreId("orders", "0_1", "counts"))
    other = keys.entry(listed(StoreId("orders", "0_10", "counts"), 5))
    assert short.endswith("/")
    assert not other.startswith(short)


@pytest.mark.parametrize(
    "key",
    [
        "catalog/orders/0_1/counts/notes.txt",
        f"catalog/orders/0_1/00000000000000000001-20260504T120001.234Z-{SNAPSHOT_ID}.json",
        f"catalog/a%2fb/0/s/00000000000000000001-20260504T120001.234Z-{SNAPSHOT_ID}.json",
        f"catalog/a b/0/s/00000000000000000001-20260504T120001.234Z-{SNAPSHOT_ID}.json",
        f"catalog/a/0/s/1-20260504T120001.234Z-{SNAPSHOT_ID}.json",
        f"catalog/a/0/s/00000000000000000001x1-20260504T120001.234Z-{SNAPSHOT_ID}.json",
        f"catalog/a/0/s/00000000000000000001-20261304T120001.234Z-{SNAPSHOT_ID}.json",
        f"catalog/a/0/s/-0000000000000000004-20260504T120001.234Z-{SNAPSHOT_ID}.json",
        "snapstore.json",
    ],
)
def test_a_key_that_was_never_made_is_not_read(key: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - strptime words its own
        keys.parse_entry(key)


def test_an_empty_name_has_no_key_g87() -> None:
    with pytest.raises(UnsafePathError):
        keys.segment("")


def test_an_id_that_is_none_leads_nowhere() -> None:
    with pytest.raises(ManifestInvalidError):
        keys.manifest("../../etc/passwd")
