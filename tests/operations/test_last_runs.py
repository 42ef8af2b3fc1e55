"""What a run leaves for the next one, and how it is forgotten."""

import hashlib
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from snapstore.errors import ConfigError
from snapstore.model.identity import StoreId
from snapstore.model.listing import ListedSnapshot
from snapstore.operations.last_runs import LastRun, LastRuns, SeenStore

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def seen(name: str) -> SeenStore:
    listed = ListedSnapshot(
        store=StoreId("orders", "0_0", name),
        id="a" * 64,
        captured_at=NOON,
        offset_sum=7,
        changelogs=1,
    )
    return SeenStore(
        fingerprint="f", running=False, listed=listed, listed_at=NOON, files=3, bytes=9
    )


def run_of(*names: str, settings: str = "s", repository: str = "r") -> LastRun:
    return LastRun(
        settings=settings,
        repository=repository,
        url="s3://b/p",
        stores={name: seen(name) for name in names},
    )


@pytest.fixture
def runs(tmp_path: Path) -> LastRuns:
    return LastRuns(tmp_path / "runs")


def test_what_is_kept_comes_back(runs: LastRuns) -> None:
    assert runs.load("here") is None
    runs.save("here", run_of("counts"), stamp=runs.stamp("r"))
    assert runs.load("here") == run_of("counts")
    assert runs.load("there") is None


def test_stores_of_two_runs_are_kept_together(runs: LastRuns) -> None:
    runs.save("here", run_of("counts"), stamp="")
    runs.save("here", run_of("totals"), stamp="")
    assert runs.load("here") == run_of("counts", "totals")


@pytest.mark.parametrize("other", [{"settings": "t"}, {"repository": "q"}])
def test_what_other_settings_or_another_repository_left_is_replaced(
    runs: LastRuns, other: dict[str, str]
) -> None:
    runs.save("here", run_of("counts"), stamp="")
    runs.save("here", run_of("totals", **other), stamp="")
    assert runs.load("here") == run_of("totals", **other)


@pytest.mark.parametrize(("repository", "url"), [("r", "elsewhere"), ("q", "s3://b/p")])
def test_a_repository_is_forgotten_by_its_id_and_by_its_place(
    runs: LastRuns, repository: str, url: str
) -> None:
    runs.save("here", run_of("counts"), stamp="")
    runs.forget(repository, url)
    assert runs.load("here") is None


def test_another_repository_is_not_forgotten(runs: LastRuns) -> None:
    runs.save("here", run_of("counts"), stamp="")
    runs.forget("q", "elsewhere")
    assert runs.load("here") is not None


def test_a_run_that_began_before_it_was_forgotten_keeps_nothing(runs: LastRuns) -> None:
    stamp = runs.stamp("r")
    runs.forget("r", "s3://b/p")
    runs.save("here", run_of("counts"), stamp=stamp)
    assert runs.load("here") is None
    runs.save("here", run_of("counts"), stamp=runs.stamp("r"))
    assert runs.load("here") is not None


def test_it_is_forgotten_also_when_the_work_fails(runs: LastRuns) -> None:
    def work() -> None:
        runs.save("here", run_of("counts"), stamp=runs.stamp("r"))
        raise KeyError

    with pytest.raises(KeyError), runs.forgetting("r", "s3://b/p"):
        work()
    assert runs.load("here") is None


def test_a_record_of_another_shape_counts_for_nothing(runs: LastRuns, tmp_path: Path) -> None:
    runs.save("here", run_of("counts"), stamp="")
    (path,) = (tmp_path / "runs").glob("*.run")
    magic = path.read_bytes().partition(b"\n")[0] + b"\n"
    body = msgspec.msgpack.encode({"settings": 1})
    path.write_bytes(magic + hashlib.sha256(body).digest() + body)
    assert runs.load("here") is None


def test_a_save_that_was_killed_is_no_hindrance(runs: LastRuns, tmp_path: Path) -> None:
    runs.save("here", run_of("counts"), stamp="")
    (path,) = (tmp_path / "runs").glob("*.run")
    path.with_name(f".{path.name}.new").write_bytes(b"half")
    runs.save("here", run_of("totals"), stamp="")
    assert runs.load("here") == run_of("counts", "totals")


def test_where_no_folder_can_be_made_there_is_nothing_to_forget(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    LastRuns(tmp_path / "file" / "runs").forget("r", "s3://b/p")


def test_what_cannot_be_forgotten_is_an_error(runs: LastRuns, tmp_path: Path) -> None:
    (tmp_path / "runs" / "lock").mkdir(parents=True)
    with pytest.raises(ConfigError, match="cannot be forgotten"):
        runs.forget("r", "s3://b/p")
