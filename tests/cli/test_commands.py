"""Each command as a person uses it, on a real state directory."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.support.fixtures import expected, unpack

COUNT = "ks440-alos/1_0/count"


def ids(cli: Cli, url: str) -> list[str]:
    return [item["id"] for item in cli("list", "-r", url, "--json").document["items"]]


def test_init_makes_a_repository_once(cli: Cli, tmp_path: Path) -> None:
    made = cli("init", "-r", tmp_path / "r")
    assert made.code == 0
    assert made.out.startswith("made repository ")
    again = cli("init", "-r", tmp_path / "r")
    assert again.code == 11
    known = cli("init", "-r", tmp_path / "r", "--exist-ok", "--json").document
    assert known["created"] is False
    assert known["uploads"] == "checked_by_storage"


def test_init_refuses_a_folder_that_holds_something_else(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos/a.jpg").write_bytes(b"x")
    assert cli("init", "-r", tmp_path / "photos").code == 11


def test_init_writes_a_configuration_that_works(cli: Cli, tmp_path: Path) -> None:
    made = cli("init", "-r", tmp_path / "r", "--write-config", "snapstore.yaml")
    assert made.code == 0
    assert cli("list").code == 0
    shown = cli("config", "show").out
    assert str(tmp_path / "r") in shown
    assert "snapstore.yaml" in shown
    assert cli("init", "--write-config", "snapstore.yaml").code == 11


def test_an_init_that_failed_can_be_repeated_h40(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    line = ("init", "-r", tmp_path / "file" / "r", "--write-config", "snapstore.yaml")
    assert cli(*line).code != 0
    assert not Path("snapstore.yaml").exists()
    (tmp_path / "file").unlink()
    (tmp_path / "file").mkdir()
    assert cli(*line).code == 0
    assert cli("list").code == 0


def test_a_file_that_init_did_not_write_stays_when_it_fails_h40(cli: Cli) -> None:
    Path("mine.yaml").write_text("# mine")
    assert cli("init", "-r", "r", "--write-config", "mine.yaml").code == 11
    assert Path("mine.yaml").read_text() == "# mine"
    assert not Path("r").exists()


def test_init_can_write_a_configuration_alone(cli: Cli) -> None:
    assert cli("init", "--write-config", "new.yaml").out == "wrote new.yaml\n"
    assert cli("config", "check", "-c", "new.yaml").code == 0


def test_config_check_finds_a_wrong_option_of_a_plugin(cli: Cli) -> None:
    Path("snapstore.yaml").write_text(
        "repository: {url: 's3://bucket/x', options: {endpoint: 'http://h'}}"
    )
    result = cli("config", "check")
    assert result.code == 2
    assert "repository.options.endpoint: unknown key" in result.err
    assert "did you mean endpoint_url?" in result.err


def test_config_check_refuses_a_key_that_the_layout_cannot_use(cli: Cli) -> None:
    Path("snapstore.yaml").write_text("state: {layout: plain, guarantee: exactly_once}")
    result = cli("config", "check")
    assert result.code == 2
    assert "the layout plain has no use for state.guarantee" in result.err


def test_discover_tells_stores_offsets_and_sizes(cli: Cli, state_dir: Path) -> None:
    found = cli("discover", "--state-dir", state_dir, "--json").document["items"]
    known = expected("ks440-alos")
    assert len(found) == 19
    count = next(item for item in found if (item["task"], item["store"]) == ("1_0", "count"))
    end = known.changelog_end_offsets["ks440-alos-count-changelog-0"]
    assert count["positions"][0]["applied_offset"] == end - 1
    assert count["running"] is False
    assert count["size_bytes"] > 0


def test_discover_says_why_a_store_cannot_be_taken(cli: Cli, tmp_path: Path) -> None:
    unpack("ks440-alos-hot", tmp_path)
    result = cli("discover", "--state-dir", tmp_path)
    assert result.code == 0
    assert "no snapshot could be taken of 13 of them now" in result.out
    assert "unknown offset" in result.out
    assert result.out.count("it was not closed cleanly, and no offset had been flushed") == 1
    assert result.out.count("hint: ") == 2


@pytest.mark.parametrize("verb", [("discover",), ("fsck",), ("prepare", "--application", "a")])
def test_the_state_directory_is_taken_as_an_argument_and_as_an_option(
    cli: Cli, tmp_path: Path, url: str, verb: tuple[str, ...]
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    told = 10 if verb == ("fsck",) else 0
    assert cli(*verb, empty, "-r", url).code == told
    assert cli(*verb, "--state-dir", empty, "-r", url).code == told
    both = cli(*verb, empty, "--state-dir", empty, "-r", url)
    assert both.code == 2
    assert "exclude each other" in both.err


@pytest.mark.parametrize(
    "verb", [("discover",), ("fsck",), ("snapshot",), ("prepare", "--application", "a")]
)
def test_a_file_is_no_state_directory(
    cli: Cli, tmp_path: Path, url: str, verb: tuple[str, ...]
) -> None:
    (tmp_path / "file").write_bytes(b"x")
    result = cli(*verb, "--state-dir", tmp_path / "file", "-r", url)
    assert result.code == 2
    assert "is not a directory" in result.err


@pytest.mark.parametrize("verb", ["discover", "snapshot", "fsck"])
@pytest.mark.parametrize(
    "place",
    [
        "above",
        "above/more",
        "above/more/state/ks440-alos/1_0",
        "above/more/state/ks440-alos/1_0/rocksdb/count",
    ],
)
def test_a_folder_too_high_or_too_low_is_told_where_the_stores_are_h54(
    cli: Cli, tmp_path: Path, url: str, state_dir: Path, verb: str, place: str
) -> None:
    (tmp_path / "above" / "more" / "beside").mkdir(parents=True)
    right = tmp_path / "above" / "more" / "state"
    state_dir.rename(right)
    result = cli(
        verb, "--state-dir", tmp_path / "above" / place.removeprefix("above").strip("/"), "-r", url
    )
    named = right / "ks440-alos" if "1_0" in place else right
    assert f"there are stores in {named}: name that folder" in result.err
    assert cli(verb, "--state-dir", named, "-r", url).code == 0


def test_a_wrong_name_in_the_right_folder_is_told_the_near_one_h54(
    cli: Cli, url: str, state_dir: Path
) -> None:
    result = cli("snapshot", "cuont", "--state-dir", state_dir, "-r", url)
    assert "did you mean count?" in result.err


def test_a_state_directory_that_is_not_there_is_10(cli: Cli, url: str) -> None:
    for verb in ("discover", "snapshot"):
        assert cli(verb, "--state-dir", "/nowhere", "-r", url).code == 10


def test_snapshot_sends_everything_once_and_nothing_twice(
    cli: Cli, url: str, state_dir: Path
) -> None:
    first = cli("snapshot", "-r", url, "--state-dir", state_dir, "--json").document
    assert {item["status"] for item in first["items"]} == {"stored"}
    assert first["new_files"] > 0
    second = cli("snapshot", "-r", url, "--state-dir", state_dir)
    assert "19 snapshots: 0 new files, 0 B;" in second.out
    third = cli("snapshot", "-r", url, "--state-dir", state_dir, "--skip-unchanged", "--json")
    assert {item["status"] for item in third.document["items"]} == {"unchanged"}
    assert len(ids(cli, url)) == 38


def test_snapshot_names_the_application_where_there_are_several_h71(
    cli: Cli, url: str, state_dir: Path
) -> None:
    line = ("snapshot", "-r", url, "--state-dir", state_dir, "--task", "1_0")
    assert "APPLICATION" not in cli(*line).out
    unpack("ks440-alos-hot", state_dir)
    table = cli(*line).out.splitlines()
    assert table[0].split()[:3] == ["APPLICATION", "TASK", "STORE"]
    assert {line.split()[0] for line in table[1:-1]} == {"ks440-alos", "ks440-alos-hot"}


def test_a_name_that_is_not_utf_8_is_told_and_stops_no_other_store_h38(
    cli: Cli, url: str, state_dir: Path
) -> None:
    stores = os.fsencode(state_dir / "ks440-alos/1_0/rocksdb")
    other = os.fsencode(state_dir) + b"/other\xfe"
    shutil.copytree(os.fsdecode(stores + b"/count"), os.fsdecode(stores + b"/odd\xff"))
    shutil.copytree(state_dir / "ks440-alos", os.fsdecode(other))
    for loudness in ((), ("--json",)):
        seen = cli("discover", state_dir, *loudness)
        assert seen.code in (0, 3), seen.err
        assert r"odd\udcff" in seen.out.replace("\\\\", "\\")
        line = ("snapshot", "-r", url, "--state-dir", state_dir, "--task", "1_0", *loudness)
        taken = cli(*line)
        assert taken.code == 3, taken.err
    outcomes = {
        (item["application"], item["store"]): item["status"] for item in taken.document["items"]
    }
    assert outcomes["ks440-alos", "count"] == "stored"
    odd = {name for name, status in outcomes.items() if status == "failed"}
    assert {store for application, store in odd if application == "ks440-alos"} == {r"odd\udcff"}


def test_an_application_whose_name_is_not_utf_8_is_told_what_to_do_h38(
    cli: Cli, url: str, state_dir: Path
) -> None:
    odd = os.fsdecode(os.fsencode(state_dir) + b"/other\xfe")
    (state_dir / "ks440-alos").rename(odd)
    taken = cli("snapshot", "-r", url, "--state-dir", state_dir, "--task", "1_0", "--json")
    errors = [item["error"] for item in taken.document["items"] if item["status"] == "failed"]
    assert errors
    assert all("rename it while the application is stopped" in each["hint"] for each in errors)


def test_a_store_that_is_named_twice_is_taken_once(cli: Cli, url: str, state_dir: Path) -> None:
    taken = cli(
        "snapshot", "count", "count", "-r", url, "--state-dir", state_dir, "--task", "1_0", "--json"
    ).document
    assert len(taken["items"]) == 1
    assert len(ids(cli, url)) == 1


def test_a_store_that_is_not_there_is_10_with_the_near_name(
    cli: Cli, url: str, state_dir: Path
) -> None:
    result = cli("snapshot", "counts", "-r", url, "--state-dir", state_dir)
    assert result.code == 10
    assert "did you mean count?" in result.err


def test_stores_can_be_left_out_by_configuration(cli: Cli, url: str, state_dir: Path) -> None:
    Path("snapstore.yaml").write_text("stores: {count: {skip: true}}")
    taken = cli("snapshot", "-r", url, "--state-dir", state_dir, "--json").document
    assert "count" not in {item["store"] for item in taken["items"]}
    assert any("count is left out" in note for note in taken["notes"])


def test_some_failed_is_3_with_the_report_on_stdout(cli: Cli, url: str, tmp_path: Path) -> None:
    unpack("ks440-alos-hot", tmp_path / "hot")
    result = cli("snapshot", "-r", url, "--state-dir", tmp_path / "hot", "--json")
    assert result.code == 3
    statuses = [item["status"] for item in result.document["items"]]
    assert statuses.count("stored") == 6
    assert statuses.count("failed") == 13
    assert result.error["code"] == "partial_failure"
    assert result.error["exit_code"] == 3
    assert len(result.error["facts"]["failed"]) == 13


def test_all_failed_is_the_code_of_the_reason(cli: Cli, url: str, tmp_path: Path) -> None:
    unpack("ks440-alos-hot", tmp_path / "hot")
    result = cli("snapshot", "window", "-r", url, "--state-dir", tmp_path / "hot", "--json")
    assert result.code == 5
    assert result.error["code"] == "unknown_offset"
    assert len(result.document["items"]) == 2


def test_lost_and_found_is_harmless(cli: Cli, url: str, state_dir: Path) -> None:
    """G103: what is only noted does not change the exit code."""
    (state_dir / "lost+found").mkdir(mode=0o700)
    assert cli("snapshot", "count", "-r", url, "--state-dir", state_dir).code == 0


def test_a_dry_run_changes_nothing(cli: Cli, url: str, state_dir: Path, tmp_path: Path) -> None:
    def objects() -> list[str]:
        return sorted(str(path) for path in Path(url).rglob("*"))

    before = objects()
    planned = cli("snapshot", "-r", url, "--state-dir", state_dir, "--task", "1_0", "--dry-run")
    assert planned.code == 0
    assert "would take 1 snapshot" in planned.out
    assert objects() == before
    cli("snapshot", "-r", url, "--state-dir", state_dir, "--task", "1_0")
    restored = cli(
        "restore",
        COUNT,
        "-r",
        url,
        "--target",
        tmp_path / "new",
        "--allow-unchecked-changelog",
        "--dry-run",
    )
    assert "would restore 1 store" in restored.out
    assert not (tmp_path / "new").exists()
    deleted = cli("delete", COUNT, "-r", url, "--dry-run")
    assert "would be deleted" in deleted.out
    assert len(ids(cli, url)) == 1


def test_list_filters(cli: Cli, url: str, state_dir: Path) -> None:
    cli("snapshot", "count", "plain", "-r", url, "--state-dir", state_dir, "--tag", "run=1")
    cli("snapshot", "count", "-r", url, "--state-dir", state_dir, "--tag", "run=2")

    def listed(*arguments: str) -> list[tuple[str, str]]:
        items = cli("list", "-r", url, "--json", *arguments).document["items"]
        return [(item["task"], item["store"]) for item in items]

    assert len(listed()) == 6
    assert listed("--task", "0_1") == [("0_1", "plain")]
    assert set(listed("--store", "count")) == {("1_0", "count"), ("1_1", "count")}
    assert len(listed("--store", "count", "--latest", "1")) == 2
    assert listed("--application", "other") == []
    assert len(listed("--since", "1h")) == 6
    assert len(listed("--tag", "run=1")) == 4
    assert len(listed("--tag", "run=1", "--latest", "1")) == 4
    assert listed("--tag", "run=3") == []


def test_list_long_reads_sizes_and_tags(cli: Cli, url: str, state_dir: Path) -> None:
    cli("snapshot", "count", "-r", url, "--state-dir", state_dir, "--tag", "release=42")
    item = cli("list", "-r", url, "--long", "--json").document["items"][0]
    assert item["tags"] == {"release": "42"}
    assert item["size_bytes"] >= item["new_bytes"] > 0
    assert "release=42" in cli("list", "-r", url, "--long").out


@pytest.mark.parametrize("form", ["id", "prefix", "store", "partition", "topic", "offset"])
def test_show_understands_every_form_of_reference(cli: Cli, filled: str, form: str) -> None:
    [snapshot] = ids(cli, filled)
    ref = {
        "id": snapshot,
        "prefix": snapshot[:8],
        "store": COUNT,
        "partition": "ks440-alos/count:0",
        "topic": "ks440-alos-count-changelog:0",
        "offset": "ks440-alos-count-changelog:0@99999",
    }[form]
    shown = cli("show", ref, "-r", filled, "--files", "--json").document
    assert shown["id"] == snapshot
    assert shown["positions"][0]["resume_offset"] == shown["applied_offset"] + 1
    assert sum(file["size_bytes"] for file in shown["file_list"]) == shown["size_bytes"]


def test_show_of_nothing_is_10(cli: Cli, filled: str) -> None:
    assert cli("show", f"{COUNT}@5", "-r", filled).code == 10
    assert cli("show", "!", "-r", filled).code == 2


def test_diff_counts_what_two_snapshots_share(cli: Cli, filled: str, state_dir: Path) -> None:
    cli("snapshot", "-r", filled, "--state-dir", state_dir, "--task", "1_1")
    found = cli(
        "diff", "ks440-alos/1_0/count", "ks440-alos/1_1/count", "-r", filled, "--json"
    ).document
    assert found["added_bytes"] > 0
    assert "new;" in cli("diff", "ks440-alos/1_0/count", "ks440-alos/1_1/count", "-r", filled).out


def test_a_pinned_snapshot_is_not_deleted(cli: Cli, filled: str) -> None:
    assert cli("pin", COUNT, "-r", filled, "--reason", "audit").code == 0
    assert "pinned" in cli("list", "-r", filled).out
    assert cli("delete", COUNT, "-r", filled, "--yes").code == 5
    assert cli("unpin", COUNT, "-r", filled).code == 0
    assert cli("delete", COUNT, "-r", filled, "--yes").code == 0
    assert ids(cli, filled) == []


def test_delete_does_not_act_unasked(cli: Cli, filled: str) -> None:
    result = cli("delete", COUNT, "-r", filled)
    assert result.code == 2
    assert "--yes" in result.err
    assert len(ids(cli, filled)) == 1


def test_delete_finds_every_reference_before_it_acts(cli: Cli, filled: str) -> None:
    assert cli("delete", COUNT, "ffffffff", "-r", filled, "--yes").code == 10
    assert len(ids(cli, filled)) == 1


def test_verify_finds_damage_and_ends_with_4(cli: Cli, filled: str) -> None:
    assert "nothing wrong" in cli("verify", "-r", filled, "--read-data", "--open").out
    blob = max(
        Path(filled, "blobs").rglob("*"), key=lambda path: path.stat().st_size * path.is_file()
    )
    blob.chmod(0o600)
    content = bytearray(blob.read_bytes())
    content[len(content) // 2] ^= 1
    blob.write_bytes(content)
    assert cli("verify", "-r", filled).code == 0
    damaged = cli("verify", "-r", filled, "--read-data", "--json")
    assert damaged.code == 4
    assert damaged.document["sound"] is False
    assert damaged.document["damage"][0]["kind"] == "corrupt"
    assert damaged.error["code"] == "integrity"
    blob.unlink()
    assert "is missing" in cli("verify", "-r", filled).out


def test_restore_brings_back_what_was_saved(
    cli: Cli, filled: str, state_dir: Path, tmp_path: Path
) -> None:
    target = tmp_path / "new"
    result = cli(
        "restore",
        "--application",
        "ks440-alos",
        "-r",
        filled,
        "--target",
        target,
        "--allow-unchecked-changelog",
        "--json",
    )
    assert result.code == 0, result.err
    [store] = result.document["items"]
    assert store["store"] == COUNT
    for path in (state_dir / COUNT.replace("/1_0/", "/1_0/rocksdb/")).glob("*.sst"):
        restored = target / path.relative_to(state_dir)
        assert restored.read_bytes() == path.read_bytes()


def test_restore_without_proof_is_refused(cli: Cli, filled: str) -> None:
    result = cli("restore", COUNT, "-r", filled, "--target", "new")
    assert result.code == 5
    assert "--allow-unchecked-changelog" in result.err
    assert not Path("new").exists()


def test_restore_over_something_is_refused(cli: Cli, filled: str, state_dir: Path) -> None:
    arguments = ("restore", COUNT, "-r", filled, "--target", state_dir)
    refused = cli(*arguments, "--allow-unchecked-changelog")
    assert refused.code == 11
    replaced = cli(*arguments, "--allow-unchecked-changelog", "--replace", "--json")
    assert replaced.code == 0
    assert replaced.document["items"][0]["fetched_bytes"] == 0


def test_a_first_start_and_an_unreachable_repository_are_told_apart(
    cli: Cli, filled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G68: no snapshot may mean an empty start; not being able to look never does."""
    arguments = ("restore", "--application", "ks440-alos", "--task", "7_7", "--target", "new")
    assert cli(*arguments, "-r", filled).code == 10
    first = cli(*arguments, "-r", filled, "--if-exists")
    assert first.code == 0
    assert "nothing was done" in first.out
    assert not Path("new").exists()
    assert cli(*arguments, "-r", tmp_path / "none", "--if-exists").code == 10
    Path("snapstore.yaml").write_text(
        "repository:\n"
        "  url: s3://bucket/x\n"
        "  options: {endpoint_url: 'http://127.0.0.1:1', max_attempts: 1, profile: null}\n"
    )
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    unreachable = cli(*arguments, "--if-exists")
    assert unreachable.code == 12
    assert unreachable.err.startswith("error: ")


def test_references_and_filters_exclude_each_other(cli: Cli, filled: str) -> None:
    result = cli("restore", COUNT, "--task", "1_0", "-r", filled, "--target", "new")
    assert result.code == 2


def test_nothing_named_to_restore_is_2(cli: Cli, filled: str) -> None:
    assert cli("restore", "-r", filled, "--target", "new").code == 2


def test_two_runs_at_a_time_are_a_conflict(
    cli: Cli, url: str, state_dir: Path, tmp_path: Path, clean_environment: Path
) -> None:
    marker = json.loads(Path(url, "snapstore.json").read_text())["id"]
    lock = clean_environment / ".cache/snapstore" / marker / "ks440-alos.lock"
    lock.parent.mkdir(parents=True)
    program = (
        "import fcntl, sys, time; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX);"
        " print('held', flush=True); time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(lock)], stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        result = cli("snapshot", "count", "-r", url, "--state-dir", state_dir)
        holder.kill()
    assert result.code == 11
    assert "another run" in result.err or "has been at work" in result.err


def test_plugins_lists_what_is_built_in(cli: Cli) -> None:
    names = {(item["kind"], item["name"]) for item in cli("plugins", "--json").document["items"]}
    assert names >= {("storages", "s3"), ("backends", "rocksdb"), ("layouts", "plain")}
    assert os.linesep in cli("plugins").out


def test_a_file_is_no_place_for_a_repository(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    for line in (("init", "-r", path), ("init", "-r", path / "inside"), ("list", "-r", path)):
        result = cli(*line)
        assert result.code == 2, result.err
        assert f"{path} is not a folder" in result.err
    assert path.read_text() == "mine"
