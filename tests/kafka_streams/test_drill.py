"""Drills of a real application's snapshots: sound ones, a damaged one, and one that lies."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from snapstore.kafka.changelog import KafkaChangelog
from snapstore.model.identity import StoreId
from snapstore.model.listing import ListedSnapshot
from snapstore.model.snapshot import FORMAT, Manifest, Position, Snapshot
from snapstore.model.store import BytesSource, ChangelogPosition
from snapstore.operations.fence import take_fence
from snapstore.repository import Repository, keys
from snapstore.storages.local import LocalStorage
from tests.support.broker import Broker
from tests.support.command import Command
from tests.support.streams_app import StreamsApp
from tests.support.streams_input import InputShape
from tests.support.streams_lab import StreamsLab
from tests.support.topic import TopicRecord, bounds, fold, read_partition

pytestmark = pytest.mark.kafka

STORES = (
    "join-left-shared-join-store",
    "join-outer-other-join-store",
    "join-this-join-store",
    "mem",
    "plain",
    "session",
    "table",
    "versioned",
    "window",
)
IN_TASKS = {(task, store) for task in ("0_0", "0_1") for store in STORES} | {
    ("1_0", "count"),
    ("1_1", "count"),
}
SHAPE = InputShape(records=3000, keys=200, delete_pct=10)


@dataclass(frozen=True, kw_only=True)
class Story:
    """An application with a snapshot of every store on disk, and records that came after it."""

    app: StreamsApp
    snapstore: Command
    folder: Path

    @property
    def repository(self) -> Repository:
        return Repository.open(LocalStorage((self.folder / "repository").as_uri()))

    def store(self, name: str, task: str = "0_0") -> StoreId:
        return StoreId(self.app.application, task, name)

    def copied(self, folder: Path) -> "Story":
        """The same with a repository of its own, to spoil."""
        shutil.copytree(self.folder / "repository", folder / "repository")
        snapstore = replace(
            self.snapstore, home=folder / "home", repository=str(folder / "repository")
        )
        return replace(self, folder=folder, snapstore=snapstore)

    def publish(self, manifest: Manifest) -> ListedSnapshot:
        """Make a manifest the only snapshot of its store."""
        catalog = self.repository.catalog
        catalog.remove(catalog.list_store(manifest.description.store).snapshots)
        return self.repository.catalog.publish(
            Snapshot(
                format=FORMAT,
                id=self.repository.manifests.put(manifest),
                description=manifest.description,
                files=len(manifest.files),
                size_bytes=sum(file.size for file in manifest.files),
                new_files=0,
                new_bytes=0,
            )
        )

    def newest(self, store: StoreId) -> ListedSnapshot:
        listed = self.repository.catalog.newest_of(store)
        assert listed is not None
        return listed


@pytest.fixture(scope="module", params=["4.4.0", "4.2.1"])
def story(
    broker: Broker, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("drill")
    lab = StreamsLab(broker, folder / "lab")
    try:
        app = lab.app(lab.new_topic(), version=request.param, keys=SHAPE.keys)
        before = lab.fill(app.topic, SHAPE)
        app.run()
        snapstore = Command(
            folder / "home",
            str(folder / "repository"),
            sections={
                "kafka": {"bootstrap": broker.bootstrap},
                "stores": {"mem": {"in_memory": True, "subtopology": 0}},
            },
        )
        snapstore("init")
        snapstore("snapshot", "--state-dir", app.state_dir, expect=(0, 3))
        lab.fill(app.topic, replace(SHAPE, seed=2, start_ts=before.next_ts))
        app.run()
        yield Story(app=app, snapstore=snapstore, folder=folder)
    finally:
        lab.close()


def drilled(document: Any) -> dict[tuple[str, str], Any]:
    return {(item["task"], item["store"]): item for item in document["items"]}


def test_what_a_snapshot_and_the_tail_bring_back_is_what_the_changelog_holds(
    story: Story, tmp_path: Path
) -> None:
    scratch, junit = tmp_path / "scratch", tmp_path / "drill.xml"
    scratch.mkdir()

    document = story.snapstore("drill", "--scratch", scratch, "--junit", junit).document

    items = drilled(document)
    assert set(items) == IN_TASKS | {("global", "global")}
    for place in IN_TASKS:
        item = items[place]
        assert item["outcome"] == "equal", item
        assert item["different_keys"] == 0
        assert item["pairs"] > 0
        (partition,) = item["partitions"]
        assert 0 < partition["replayed_records"] < partition["rebuilt_records"], item
        topic = partition["changelog"].rpartition(":")[0]
        end = bounds(story.app.bootstrap, topic, int(place[0].rpartition("_")[2])).end
        assert partition["end_offset"] == end
        assert item["rpo"]["records"] >= partition["replayed_records"]
        assert item["rto"] == item["restore_seconds"] + item["replay_seconds"]
        for digest in item["digests"]:
            assert digest["restored_sha256"] == digest["rebuilt_sha256"]
            assert digest["family"] != "offsets"
    assert items[("global", "global")]["outcome"] == "skipped"
    assert list(scratch.iterdir()) == []
    suite = ElementTree.parse(junit).getroot()
    assert (suite.get("failures"), suite.get("errors"), suite.get("skipped")) == ("0", "0", "1")
    assert suite.get("tests") == str(len(items))


def test_the_example_of_a_nightly_drill_runs(story: Story, tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "examples/drill/kafka_drill.sh"
    junit = tmp_path / "drill.xml"
    tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [script, story.app.application, "2", junit],
        env={
            "PATH": tools,
            "HOME": str(tmp_path),
            "SNAPSTORE_REPOSITORY": story.snapstore.repository,
            "SNAPSTORE_KAFKA_BOOTSTRAP": story.app.bootstrap,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 stores of" in done.stdout
    assert ElementTree.parse(junit).getroot().get("tests") == "2"


def test_a_sample_is_drawn_by_its_seed(story: Story) -> None:
    def names(seed: int) -> set[tuple[str, str]]:
        drill = ("drill", "--task", "0_0", "--sample", 2, "--seed", seed)
        document = story.snapstore(*drill).document
        assert (len(document["items"]), document["candidates"]) == (2, len(STORES))
        return set(drilled(document))

    assert names(1) == names(1)


def test_a_damaged_block_in_a_blob_is_found(story: Story, tmp_path: Path) -> None:
    copy = story.copied(tmp_path)
    listed = copy.newest(copy.store("plain"))
    manifest = copy.repository.manifests.load(listed.id)
    table = max(
        (entry for entry in manifest.files if entry.name.endswith(".sst")),
        key=lambda entry: entry.size,
    )
    assert table.blob is not None
    path = copy.folder / "repository" / keys.blob(table.blob)
    path.chmod(0o600)
    path.write_bytes(spoilt(path.read_bytes()))

    answer = copy.snapstore("drill", f"{copy.store('plain')}", expect=4)

    (item,) = answer.document["items"]
    assert (item["outcome"], item["code"]) == ("damaged", "blob_corrupt")
    assert table.blob in item["reason"]


def test_a_block_that_was_damaged_before_it_was_stored_is_found(
    story: Story, tmp_path: Path
) -> None:
    """Every hash is right, and the database opens: only reading shows it."""
    copy = story.copied(tmp_path)
    listed = copy.newest(copy.store("plain"))
    manifest = copy.repository.manifests.load(listed.id)
    writer = copy.repository.begin_run("spoilt")
    files = []
    for entry in manifest.files:
        if entry.name.endswith(".sst") and entry.blob is not None:
            path = copy.folder / "repository" / keys.blob(entry.blob)
            content = spoilt(path.read_bytes())
            sha256 = hashlib.sha256(content).hexdigest()
            blob = writer.put(BytesSource(content), sha256, {})
            files.append(msgspec.structs.replace(entry, sha256=sha256, blob=blob.name))
        else:
            files.append(entry)
    copy.publish(msgspec.structs.replace(manifest, files=tuple(files)))

    answer = copy.snapstore("drill", f"{copy.store('plain')}", expect=4)

    (item,) = answer.document["items"]
    assert item["outcome"] == "damaged", item


def test_an_offset_that_is_too_high_is_found_with_the_keys_that_are_wrong(
    story: Story, tmp_path: Path
) -> None:
    copy = story.copied(tmp_path)
    store = copy.store("plain")
    listed = copy.newest(store)
    manifest = copy.repository.manifests.load(listed.id)
    (true,) = (each.position for each in manifest.description.positions)
    records = read_partition(copy.app.bootstrap, true.changelog.topic, true.changelog.partition)
    lie = records[-20].offset
    changelog = KafkaChangelog(copy.app.bootstrap)
    position = ChangelogPosition(true.changelog, lie)
    fence = take_fence(changelog, position, now=datetime.now(UTC))
    changelog.close()
    copy.publish(
        msgspec.structs.replace(
            manifest,
            description=msgspec.structs.replace(
                manifest.description, positions=(Position(position=position, fence=fence),)
            ),
        )
    )

    junit = tmp_path / "drill.xml"
    answer = copy.snapstore("drill", str(store), "--junit", junit, expect=4)

    wanted = values(fold(records))
    held = values(fold(record for record in records if record.offset <= true.applied_offset))
    for record in records:
        if record.offset > lie and record.key is not None:
            held.pop(record.key, None)
            if record.value is not None:
                held[record.key] = record.value
    wrong = sorted(key for key in wanted.keys() | held.keys() if wanted.get(key) != held.get(key))
    (item,) = answer.document["items"]
    assert item["outcome"] == "differs"
    assert item["different_keys"] == len(wrong) > 0
    assert [each["key"] for each in item["differences"]] == [key.hex() for key in wrong[:10]]
    first = item["differences"][0]
    assert first["key"] in item["reason"]
    for side, content in (("restored", held), ("rebuilt", wanted)):
        value = content.get(wrong[0])
        assert first[side] is None if value is None else first[side].startswith(value[:8].hex())
    (failure,) = ElementTree.parse(junit).getroot().iter("failure")
    assert failure.text is not None
    assert wrong[0].hex() in failure.text


def test_a_topic_that_was_cut_off_is_refused_and_nothing_is_proved(
    story: Story, tmp_path: Path
) -> None:
    copy = story.copied(tmp_path)
    store = copy.store("table")
    manifest = copy.repository.manifests.load(copy.newest(store).id)
    (each,) = manifest.description.positions
    assert each.fence is not None
    other = msgspec.structs.replace(each.fence, topic_id="00000000-0000-0000-0000-000000000001")
    copy.publish(
        msgspec.structs.replace(
            manifest,
            description=msgspec.structs.replace(
                manifest.description,
                positions=(msgspec.structs.replace(each, fence=other),),
            ),
        )
    )
    answer = copy.snapstore("drill", str(store), expect=5)
    (item,) = answer.document["items"]
    assert (item["outcome"], item["code"]) == ("refused", "topic_recreated")


def spoilt(content: bytes) -> bytes:
    """Flip bits in the first data block."""
    return content[:40] + bytes([content[40] ^ 0xFF]) + content[41:]


def values(records: Mapping[bytes, TopicRecord]) -> dict[bytes, bytes]:
    return {key: record.value for key, record in records.items() if record.value is not None}
