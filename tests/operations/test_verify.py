"""Verification finds what would make a restore fail, and names what it spoils."""

import hashlib
import math
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from snapstore import client
from snapstore.config import load_config
from snapstore.errors import ConfigError, StorageError
from snapstore.model.listing import ListedSnapshot
from snapstore.model.snapshot import Manifest
from snapstore.operations.verify import VerifyOptions, verify
from snapstore.operations.verify_needs import needs_of, sample, walk
from snapstore.operations.verify_report import VerifyReport
from snapstore.ports import ObjectStat
from snapstore.repository import Repository, keys
from snapstore.storages.local import LocalStorage
from tests.support.fixtures import expected, unpack
from tests.support.repository import publish
from tests.support.restore_lab import CountingStorage, RestoreLab, tree
from tests.support.streams_store import Pairs, make_key_value, make_window, some_pairs

EXISTENCE = VerifyOptions()
DATA = VerifyOptions(read_data=True)
OPEN = VerifyOptions(open_store=True)


@pytest.fixture
def lab(tmp_path: Path) -> RestoreLab:
    """Two snapshots of one store that share a table, and one of another store."""
    lab = RestoreLab(tmp_path)
    source = tmp_path / "source"
    make_key_value(source, "0_1", "counts", Pairs(pairs=some_pairs(500), applied_offset=600))
    make_key_value(source, "0_1", "plain", Pairs(pairs=some_pairs(70), applied_offset=60))
    lab.save(source)
    more = Pairs(pairs=some_pairs(100, start=500), applied_offset=900)
    make_key_value(source, "0_1", "counts", more)
    lab.save(source)
    return lab


def look(
    lab: RestoreLab, options: VerifyOptions, repository: Repository | None = None
) -> VerifyReport:
    return verify(
        repository or lab.repository,
        lab.listed(),
        backends=lab.backends,
        listener=lab.events.append,
        options=options,
    )


@pytest.mark.parametrize("options", [EXISTENCE, DATA, OPEN])
@pytest.mark.parametrize("swept", [False, True])
def test_what_is_taken_out_of_the_catalog_meanwhile_is_no_damage(
    lab: RestoreLab, options: VerifyOptions, swept: bool
) -> None:
    """A prune removes an old snapshot, and later what only that one needed."""
    table, name, [newer, older] = shared_table(lab)
    repository = lab.repository
    listed = lab.listed()
    repository.catalog.remove([older])
    if swept:
        for blob in {*lab.blobs_of(older).values()} - {*lab.blobs_of(newer).values()}:
            blob.unlink()

    def verified() -> VerifyReport:
        return verify(
            repository,
            listed,
            backends=lab.backends,
            listener=lab.events.append,
            options=options,
        )

    report = verified()
    assert (report.damage, report.snapshots) == ((), len(listed) - 1)
    table.unlink()
    damage = verified().damage
    assert [found.snapshots for found in damage] == [(newer.id,)]
    assert name in damage[0].files


def shared_table(lab: RestoreLab) -> tuple[Path, str, list[ListedSnapshot]]:
    """Return a table that both snapshots of ``counts`` need: blob, file name, snapshots."""
    newer, older = lab.listed(store="counts")
    both = lab.blobs_of(newer).items() & lab.blobs_of(older).items()
    name, blob = max(both, key=lambda item: item[1].stat().st_size)
    return blob, name, [newer, older]


@pytest.mark.parametrize("options", [EXISTENCE, DATA, OPEN], ids=["existence", "data", "open"])
def test_a_sound_repository_has_no_damage(lab: RestoreLab, options: VerifyOptions) -> None:
    before = tree(lab.folder / "repository")

    report = look(lab, options)

    assert report.sound
    assert report.damage == ()
    assert report.snapshots == 4
    assert tree(lab.folder / "repository") == before


def test_every_blob_is_read_and_every_entry_is_scanned(lab: RestoreLab, tmp_path: Path) -> None:
    blobs = {path for item in lab.listed() for path in lab.blobs_of(item).values()}

    report = look(lab, VerifyOptions(read_data=True, open_store=True, scratch=tmp_path))

    assert (report.blobs, report.read_blobs) == (len(blobs), len(blobs))
    assert report.read_bytes == sum(path.stat().st_size for path in blobs)
    assert report.opened_stores == 4
    # An offset and a status in each of the four, beside the data.
    assert report.scanned_entries == 500 + 600 + 70 + 70 + 4 * 2
    assert not list(tmp_path.glob("snapstore-*"))


@pytest.mark.parametrize("options", [EXISTENCE, DATA, OPEN], ids=["existence", "data", "open"])
def test_a_missing_blob_is_named_with_the_file_and_all_snapshots_that_need_it(
    lab: RestoreLab, options: VerifyOptions
) -> None:
    blob, name, snapshots = shared_table(lab)
    blob.unlink()

    (damage,) = look(lab, options).damage

    assert (damage.kind, damage.blob, damage.files) == ("missing", blob.name, (name,))
    assert set(damage.snapshots) == {item.id for item in snapshots}
    assert damage.stores == ("orders/0_1/counts",)


def test_a_blob_of_another_size_is_found_without_reading_it(lab: RestoreLab) -> None:
    blob, _, _ = shared_table(lab)
    blob.chmod(0o600)
    blob.write_bytes(blob.read_bytes()[:-1])

    (damage,) = look(lab, EXISTENCE).damage

    assert (damage.kind, damage.blob) == ("size", blob.name)


def test_a_flipped_bit_is_found_by_reading_and_only_by_that(lab: RestoreLab) -> None:
    blob, name, snapshots = shared_table(lab)
    content = bytearray(blob.read_bytes())
    content[len(content) // 2] ^= 1
    blob.chmod(0o600)
    blob.write_bytes(content)

    assert look(lab, EXISTENCE).sound
    (damage,) = look(lab, DATA).damage
    assert (damage.kind, damage.blob, damage.files) == ("corrupt", blob.name, (name,))
    assert set(damage.snapshots) == {item.id for item in snapshots}
    assert {found.kind for found in look(lab, OPEN).damage} == {"corrupt"}


def test_a_damaged_manifest_is_damage_of_its_snapshot_only(lab: RestoreLab) -> None:
    victim = lab.listed(store="plain")[0]
    path = lab.folder / "repository" / keys.manifest(victim.id)
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-5])

    (damage,) = look(lab, DATA).damage

    assert (damage.kind, damage.snapshots) == ("manifest", (victim.id,))


class ArchivingStorage(LocalStorage):
    """A local storage that says of some objects that they were moved to an archive class."""

    archived: str = ""

    def stat(self, key: str) -> ObjectStat | None:
        found = super().stat(key)
        if found is not None and key.endswith(self.archived):
            return msgspec.structs.replace(found, storage_class="GLACIER")
        return found

    def read(self, key: str, *, start: int, stop: int) -> Iterator[bytes]:
        if key.endswith(self.archived):
            raise StorageError("InvalidObjectState", key=key)
        return super().read(key, start=start, stop=stop)


def test_g79_a_blob_in_an_archive_class_is_found_without_a_restore(lab: RestoreLab) -> None:
    blob, name, snapshots = shared_table(lab)
    storage = ArchivingStorage(lab.storage.url)
    storage.archived = blob.name

    report = look(lab, VerifyOptions(read_data=True, open_store=True), Repository.open(storage))

    (damage,) = report.damage
    assert (damage.kind, damage.storage_class, damage.blob) == ("archived", "GLACIER", blob.name)
    assert damage.files == (name,)
    assert set(damage.snapshots) == {item.id for item in snapshots}
    assert report.opened_stores == 2


def test_g79_a_restore_names_the_blob_and_its_class(lab: RestoreLab, tmp_path: Path) -> None:
    blob, _, _ = shared_table(lab)
    storage = ArchivingStorage(lab.storage.url)
    storage.archived = blob.name

    with pytest.raises(StorageError, match=f"{blob.name} lies in storage class GLACIER") as failed:
        lab.restore(tmp_path / "target", lab.requests(store="counts"), storage=storage)

    assert failed.value.facts["storage_class"] == "GLACIER"
    assert lab.restore(tmp_path / "other", lab.requests(store="plain"), storage=storage).stores


def test_a_storage_that_cannot_be_reached_is_an_error_and_no_damage(lab: RestoreLab) -> None:
    failing = CountingStorage(lab.storage.url, budget_bytes=0, failure=StorageError("503"))

    with pytest.raises(StorageError, match="503"):
        look(lab, DATA, Repository.open(failing))


def test_g22_a_snapshot_that_does_not_open_is_found_before_any_restore(lab: RestoreLab) -> None:
    victim = lab.listed(store="plain")[0]
    whole = lab.repository.manifests.load(victim.id)
    broken = _republish(lab, whole, "CURRENT", b"")

    report = verify(
        lab.repository,
        [broken],
        backends=lab.backends,
        listener=lab.events.append,
        options=OPEN,
    )

    (damage,) = report.damage
    assert (damage.kind, damage.snapshots) == ("unopenable", (broken.id,))
    assert "CURRENT" in damage.reason
    assert broken.id != victim.id


def test_g22_a_restore_of_latest_passes_over_a_snapshot_that_does_not_open(
    lab: RestoreLab, tmp_path: Path
) -> None:
    newer = lab.listed(store="plain")[0]
    whole = lab.repository.manifests.load(newer.id)
    lab.repository.catalog.remove([newer])
    broken = _republish(lab, whole, "CURRENT", b"MANIFEST-000001")

    report = lab.restore(tmp_path / "target", lab.requests(store="plain"))

    (store,) = report.stores
    assert [skipped.snapshot_id for skipped in store.skipped] == [broken.id]
    assert "does not open" in store.skipped[0].reason


def _republish(lab: RestoreLab, whole: Manifest, ending: str, content: bytes) -> ListedSnapshot:
    """Publish a snapshot like that one, but for the bytes of one small file."""
    files = tuple(
        msgspec.structs.replace(
            entry,
            inline=content,
            size=len(content),
            sha256=hashlib.sha256(content).hexdigest(),
        )
        if entry.name.endswith(ending)
        else entry
        for entry in whole.files
    )
    return publish(lab.repository, whole.description, files)


def test_a_sample_is_that_share_and_the_same_for_the_same_seed(lab: RestoreLab) -> None:
    manifests = {item: lab.repository.manifests.load(item.id) for item in lab.listed()}
    needs = [*needs_of(manifests).values()]
    assert len(needs) >= 4

    half = sample(needs, 50, seed=1)

    assert len(half) == -(-len(needs) // 2)
    assert [need.blob for need in half] == [need.blob for need in sample(needs, 50, seed=1)]
    drawn = {need.blob for seed in range(60) for need in sample(needs, 20, seed)}
    assert drawn == {need.blob for need in needs}
    assert len(sample(needs, 0.001, seed=1)) == 1
    assert sample([], 50, seed=1) == []


def test_only_the_sample_is_read(lab: RestoreLab) -> None:
    counting = CountingStorage(lab.storage.url)
    options = VerifyOptions(read_data=True, sample_percent=30)

    report = look(lab, options, Repository.open(counting))

    assert counting.read_bytes == report.read_bytes
    assert 0 < report.read_blobs < report.blobs


@pytest.mark.parametrize("percent", [0, -1, 100.1])
def test_a_sample_that_is_no_share_is_refused(lab: RestoreLab, percent: float) -> None:
    with pytest.raises(ConfigError):
        look(lab, VerifyOptions(read_data=True, sample_percent=percent))


def test_many_blobs_are_found_by_listing(lab: RestoreLab) -> None:
    whole = lab.repository.manifests.load(lab.listed(store="counts")[0].id)
    entry = next(entry for entry in whole.files if entry.blob is not None)
    extra = []
    for number in range(600):
        content = str(number).encode()
        sha256 = hashlib.sha256(content).hexdigest()
        lab.storage.put(keys.blob(sha256), content)
        extra.append(
            msgspec.structs.replace(
                entry, name=f"{entry.name}{number}", sha256=sha256, blob=sha256, size=len(content)
            )
        )
    listed = publish(lab.repository, whole.description, (*whole.files, *extra))
    gone = lab.folder / "repository" / keys.blob(extra[7].sha256)
    gone.unlink()

    report = verify(
        lab.repository,
        [listed],
        backends=lab.backends,
        listener=lab.events.append,
        options=EXISTENCE,
    )

    assert report.blobs > 600
    assert [found.blob for found in report.damage] == [extra[7].sha256]


@pytest.mark.slow
def test_a_real_application_verifies_with_every_entry(tmp_path: Path) -> None:
    lab = RestoreLab(tmp_path)
    unpack("ks440-alos", tmp_path / "source")
    lab.save(tmp_path / "source")

    report = look(lab, VerifyOptions(read_data=True, open_store=True))

    assert report.sound
    assert report.opened_stores == len(lab.listed())
    databases = [*expected("ks440-alos").rocksdb.values()]
    in_data = sum(sum(database.column_families.values()) for database in databases)
    # The counts leave out the family of the offsets: its offset, position and status.
    assert report.scanned_entries == in_data + 3 * len(databases)


def test_h56_exchanged_segments_are_found_in_a_snapshot_that_was_taken_all_the_same(
    tmp_path: Path,
) -> None:
    lab = RestoreLab(tmp_path)
    day = 86_400_000
    keys = {
        start: b"k" + (start + 5).to_bytes(8, "big") + bytes(4)
        for start in (20_000 * day, 20_001 * day)
    }
    source = tmp_path / "source"
    segments = {start: Pairs(pairs={key: b"v"}, applied_offset=9) for start, key in keys.items()}
    make_window(source, "0_1", "sales", segments)
    lab.save(source)
    (listed,) = lab.listed()
    assert look(lab, OPEN).sound
    manifest = lab.repository.manifests.load(listed.id)
    first, second = (f"sales/sales.{start}/" for start in keys)

    def exchanged(name: str) -> str:
        if name.startswith(first):
            return name.replace(first, second)
        return name.replace(second, first)

    files = [msgspec.structs.replace(file, name=exchanged(file.name)) for file in manifest.files]
    lab.repository.catalog.remove([listed])
    ordered = tuple(sorted(files, key=lambda file: file.name))
    publish(lab.repository, manifest.description, ordered)
    (damage,) = look(lab, OPEN).damage
    assert damage.kind == "unopenable"
    assert "two segments were exchanged" in damage.reason


@pytest.mark.parametrize("percent", [10, 33, 50, 100, 0.5])
def test_h43_after_so_many_samples_everything_has_been_read(
    lab: RestoreLab, percent: float
) -> None:
    """New blobs come in between, as they do every day."""
    manifests = {item: lab.repository.manifests.load(item.id) for item in lab.listed()}
    need, *_ = needs_of(manifests).values()
    blobs = [hashlib.sha256(b"%d" % number).hexdigest() for number in range(97)]
    needs = [msgspec.structs.replace(need, blob=blob) for blob in blobs]
    read: set[str] = set()
    after = ""
    for run in range(math.ceil(100 / percent)):
        late = hashlib.sha256(b"late %d" % run).hexdigest()
        drawn = walk([*needs, msgspec.structs.replace(need, blob=late)], percent, after)
        after = drawn[-1].blob
        read |= {each.blob for each in drawn}
    assert {*blobs} <= read


def test_h43_the_samples_of_a_host_go_on_where_the_last_one_has_ended(
    lab: RestoreLab, tmp_path: Path
) -> None:
    url = (tmp_path / "repository").as_uri()
    overrides = {"state.cache_dir": (str(tmp_path / "cache"), "--cache")}
    config = load_config(env={}, overrides=overrides)
    read: list[str | None] = []
    with client.open(url, config=config) as repository:
        whole = repository.verify(read_data=True)
        for _ in range(whole.blobs):
            report = repository.verify(read_data=True, sample_percent=100 / whole.blobs)
            assert report.read_blobs == 1
            read.append(report.read_up_to)
    assert len({*read}) == whole.blobs
