"""Configuration, references, and the files that applications write."""

import string
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from snapstore.config import load_config
from snapstore.config.schema import Sections
from snapstore.errors import CaptureError, ConfigError, RefusedError, SnapstoreError
from snapstore.layouts.kafka_streams.checkpoint import parse_checkpoint, render_checkpoint
from snapstore.layouts.kafka_streams.family import offset_entry, read_family, status_entry
from snapstore.layouts.plain import SIDE_FILE, PlainLayout, PlainOptions
from snapstore.model.folder import Folder
from snapstore.model.identity import ChangelogPartition
from snapstore.model.reference import parse_reference
from snapstore.model.store import BytesSource
from snapstore.model.units import parse_duration, parse_size
from snapstore.model.version_run import decode_run
from snapstore.operations.restore_lock import work_lock
from snapstore.operations.stage_files import FileWriter, Permissions
from snapstore.operations.swap import recover
from snapstore.pairs.decode import read_pairs
from snapstore.repository import HashCache
from snapstore.storages.local.location import root_of
from snapstore.storages.s3.options import parse_url
from tests.fuzz.mutations import changed, examples, json_values

pytestmark = pytest.mark.slow

EXAMPLE = yaml.safe_load(
    (Path(__file__).resolve().parents[2] / "config" / "snapstore.yaml").read_text()
)
LONG = b"T-" + b"9" * 5000

texts = st.one_of(
    st.text(max_size=40),
    st.text(st.sampled_from(string.digits + "abcdef:/@._- %+"), max_size=60),
    st.sampled_from(
        [
            "~nosuchuser/x",
            "file://[",
            "a\0b",
            "9" * 5000,
            "a:" + "9" * 5000,
            "a@" + "9" * 5000,
            "a:0@9999-99-99T00:00:00Z",
        ]
    ),
)


def configured(content: bytes) -> Sections | None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "snapstore.yaml")
        path.write_bytes(content)
        try:
            return load_config(path, env={"HOME": folder}).sections
        except ConfigError:
            return None


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
@examples(300)
def test_a_configuration_that_is_anything(content: bytes) -> None:
    configured(content)


@given(changed(EXAMPLE))
@examples(300)
def test_a_configuration_that_is_almost_right(document: Any) -> None:
    found = configured(yaml.safe_dump(document).encode())
    if found is not None:
        assert msgspec.convert(msgspec.to_builtins(found), Sections) == found


@pytest.mark.parametrize(
    "content",
    [
        "!!python/object/apply:os.system ['true']",
        "repository: !!python/name:os.system",
        "a: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\n"
        + "".join(
            f"{after}: &{after} [{', '.join([f'*{before}'] * 9)}]\n"
            for before, after in zip("bcdefgh", "cdefghi", strict=True)
        ),
        "&a [*a]",
        "repository: &a {options: *a}",
        "[" * 3000,
        "{a: " * 3000,
        "state: {dir: 1, dir: 2}",
        "? [1, 2]\n: 3",
        "- " * 2000,
        "\x00",
        "repository: {url: " + "x" * 1_000_000 + "}",
    ],
    ids=lambda content: content[:30],
)
def test_a_configuration_that_means_harm(content: str) -> None:
    configured(content.encode())


@given(texts)
@examples(500)
def test_a_reference_that_is_anything(text: str) -> None:
    try:
        assert parse_reference(text).text == text
    except ConfigError:
        return


@given(texts)
@examples(100)
def test_sizes_durations_and_partitions_that_are_anything(text: str) -> None:
    for parse in (parse_size, parse_duration, ChangelogPartition.parse):
        try:
            parse(text)
        except ValueError:
            continue


@given(texts.map("s3://".__add__) | texts)
@examples(100)
def test_urls_that_are_anything(url: str) -> None:
    for parse in (parse_url, root_of):
        try:
            parse(url)
        except ConfigError:
            continue


lines = st.lists(
    st.one_of(
        st.sampled_from(["0", "1", "2", "-1", "T 0 5", "T 0 -4", "T 0 9223372036854775808", ""]),
        st.text(max_size=20),
        st.builds("{} {} {}".format, st.text(max_size=5), st.integers(), st.integers()),
    ),
    max_size=6,
).map("\n".join)


@given(st.one_of(st.binary(max_size=120), lines.map(str.encode)))
@examples(500)
def test_a_checkpoint_file_that_is_anything(content: bytes) -> None:
    try:
        offsets = parse_checkpoint(content, Path("0_1/.checkpoint"))
    except CaptureError:
        return
    assert parse_checkpoint(render_checkpoint(offsets), Path("x")) == offsets
    assert all(offset is None or offset >= 0 for offset in offsets.values())


@given(
    st.dictionaries(
        st.one_of(
            st.binary(max_size=20),
            st.sampled_from([b"T-0", b"status", b"position", b"-0", b"T-", b"T-\xb2", LONG]),
        ),
        st.one_of(st.binary(max_size=12), st.binary(min_size=8, max_size=8)),
        max_size=4,
    )
)
@examples(500)
def test_an_offsets_family_that_is_anything(entries: dict[bytes, bytes]) -> None:
    try:
        content = read_family(entries, "rocksdb/counts")
    except CaptureError:
        return
    assert all(offset is None or offset >= 0 for offset in content.offsets.values())


def test_an_offsets_family_reads_what_it_wrote() -> None:
    written = dict([offset_entry(ChangelogPartition("a-b", 3), 2**62), status_entry("closed")])
    content = read_family(written, "x")
    assert content.offsets == {ChangelogPartition("a-b", 3): 2**62}
    assert content.status == "closed"


@given(
    st.one_of(
        st.binary(max_size=80),
        json_values.map(msgspec.json.encode),
        changed(
            {"format": 1, "positions": [{"topic": "t", "partition": 0, "applied_offset": 1}]}
        ).map(msgspec.json.encode),
    )
)
@examples(100)
def test_a_side_file_that_is_anything(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "a.sst").write_bytes(b"x")
        (folder / SIDE_FILE).write_bytes(content)
        layout = PlainLayout(PlainOptions(application="orders"))
        (location,) = layout.discover(folder).locations
        noted = layout.noted_offsets(location)
        try:
            positions = layout.positions(location, noted, None, running=False)  # type: ignore[arg-type]
        except (CaptureError, RefusedError):
            return
        assert all(position.applied_offset >= 0 for position in positions)


@given(st.binary(max_size=200))
@examples(100)
def test_a_cache_of_hashes_that_is_anything_is_begun_anew(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "hashes")
        path.write_bytes(content)
        HashCache(path).save()


@given(
    st.one_of(
        st.binary(max_size=80),
        changed(
            {
                "format": 1,
                "task": "0_1",
                "staged_inode": 1,
                "replaced": "x",
                "keep_replaced": False,
            }
        ).map(msgspec.json.encode),
    )
)
@examples(100)
def test_a_journal_of_a_restore_that_is_anything_moves_nothing_out_of_its_place(
    content: bytes,
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        task = folder / "orders" / "0_1"
        task.mkdir(parents=True)
        (folder / "x").mkdir()
        with (
            Folder.open(folder.resolve() / "orders") as tasks,
            work_lock(tasks, FileWriter(Permissions(), lambda _: None)) as area,
        ):
            journal = area.own.path / "swaps" / "0_1.json"
            journal.parent.mkdir()
            journal.write_bytes(content)
            try:
                recover(area, reached=lambda _: None)
            except SnapstoreError:
                return
        assert task.exists()
        assert (folder / "x").exists()


@given(st.binary(max_size=120))
@examples(100)
def test_a_run_of_versions_that_is_anything(content: bytes) -> None:
    try:
        decode_run(content)
    except CaptureError:
        return


@given(st.binary(max_size=200), st.booleans())
@examples(100)
def test_a_file_of_pairs_that_is_anything(content: bytes, magic: bool) -> None:
    with pytest.raises(SnapstoreError):
        list(read_pairs(BytesSource(content), "x.pairs"))
