"""`prune`, `repair` and `verify --catalog` as a person sees them."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from snapstore.repository import Leases, Repository, keys
from snapstore.storages.local import LocalStorage
from tests.cli.conftest import Cli
from tests.support.repository import NOON, describe, publish


@pytest.fixture
def three(url: str, state_dir: Path, cli: Cli) -> str:
    """A repository with three snapshots of one store."""
    for _ in range(3):
        assert cli("snapshot", "-r", url, "--state-dir", state_dir, "--task", "1_0").code == 0
    return url


def storage_of(url: str) -> LocalStorage:
    return LocalStorage(url)


def test_a_dry_run_names_every_snapshot_and_the_reason_and_changes_nothing(
    cli: Cli, three: str
) -> None:
    before = [stat.key for stat in storage_of(three).list("")]
    result = cli("prune", "--keep-last", 1, "--dry-run", "-r", three)
    assert result.code == 0
    lines = result.out.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["VERDICT", "keep", "remove", "remove"]
    assert "last 1 of 1" in lines[1]
    assert "no rule keeps it" in lines[2]
    assert "2 snapshots of 3 would be removed" in lines
    assert any("would be freed" in line for line in lines)
    assert [stat.key for stat in storage_of(three).list("")] == before


def test_a_prune_does_what_its_dry_run_said(cli: Cli, three: str) -> None:
    plan = cli("prune", "--keep-last", 1, "--dry-run", "--json", "-r", three).document
    done = cli("prune", "--keep-last", 1, "--json", "-r", three).document
    assert (plan["kind"], done["kind"]) == ("prune_plan", "prune_report")
    assert plan["items"] == done["items"]
    assert done["removed"] == 2
    assert done["wait"] == 25 * 3600
    assert len(cli("list", "--json", "-r", three).document["items"]) == 1


def test_rules_come_from_the_configuration_and_options_win(
    cli: Cli, three: str, tmp_path: Path
) -> None:
    config = tmp_path / "c.yaml"
    config.write_text(f"repository: {{url: '{three}'}}\nretention: {{keep_last: 1}}")
    assert cli("prune", "--dry-run", "--json", "-c", config).document["removed"] == 2
    kept = cli("prune", "--dry-run", "--json", "-c", config, "--keep-last", 2).document
    assert kept["removed"] == 1


def test_pinned_snapshots_stay(cli: Cli, three: str) -> None:
    items = cli("list", "--json", "-r", three).document["items"]
    oldest = items[-1]["id"]
    assert cli("pin", oldest, "-r", three).code == 0
    cli("prune", "--keep-last", 1, "-r", three)
    left = cli("list", "--json", "-r", three).document["items"]
    assert {item["id"] for item in left} == {items[0]["id"], oldest}


def test_quiet_prunes_say_nothing(cli: Cli, three: str) -> None:
    result = cli("prune", "-q", "-r", three)
    assert (result.code, result.out, result.err) == (0, "", "")


def test_a_prune_beside_another_is_a_conflict(cli: Cli, three: str) -> None:
    lease = Leases(
        storage_of(three), "upkeep", holder="process 7 on b", clock=lambda: datetime.now(UTC)
    )
    with lease.held():
        result = cli("prune", "-r", three)
    assert result.code == 11
    assert "process 7 on b has been at upkeep since" in result.err


def test_what_cannot_be_judged_is_told_with_the_code_of_damage(cli: Cli, three: str) -> None:
    storage = storage_of(three)
    (manifest, *_) = storage.list(keys.MANIFESTS)
    storage.put(manifest.key, b"broken")
    result = cli("prune", "-r", three)
    assert result.code == 4
    assert "no blob was condemned or deleted" in result.err
    assert "snapstore repair" in result.err


def test_catalog_and_storage_are_compared(cli: Cli, three: str) -> None:
    result = cli("verify", "--catalog", "-r", three)
    assert (result.code, result.err) == (0, "")
    assert "catalog and storage agree" in result.out
    document = cli("verify", "--catalog", "--json", "-r", three).document
    assert document["kind"] == "repository_verification"
    assert (document["sound"], document["snapshots"]) == (True, 3)


def test_a_lost_entry_is_found_and_rebuilt(cli: Cli, three: str) -> None:
    storage = storage_of(three)
    (entry, *_) = storage.list(keys.CATALOG)
    storage.delete([entry.key])
    for stat in storage.list(keys.MANIFESTS):
        os.utime(storage.root / stat.key, (NOON.timestamp(), NOON.timestamp()))
    found = cli("verify", "--catalog", "-r", three)
    assert found.code == 4
    assert "lost entry" in found.out
    assert "repair --dry-run" in found.err
    assert "would be rebuilt" in cli("repair", "--dry-run", "-r", three).out
    assert cli("repair", "-r", three).code == 0
    assert cli("verify", "--catalog", "-r", three).code == 0
    assert len(cli("list", "--json", "-r", three).document["items"]) == 3


def test_a_snapshot_that_is_lost_is_named_with_the_code_of_damage(cli: Cli, three: str) -> None:
    storage = storage_of(three)
    (blob, *_) = storage.list(keys.BLOBS)
    storage.delete([blob.key])
    result = cli("repair", "--json", "-r", three)
    assert result.code == 4
    assert len(result.document["quarantined"]) == 3
    assert "is missing" in result.document["quarantined"][0]["reason"]
    assert result.error["code"] == "integrity"
    assert cli("list", "--json", "-r", three).document["items"] == []


def test_the_catalog_is_compared_alone(cli: Cli, three: str) -> None:
    assert cli("verify", "--catalog", "--read-data", "-r", three).code == 2
    assert cli("verify", "--catalog", "count", "-r", three).code == 2


@pytest.mark.parametrize("applied_offset", [2**31, 2**53 + 1, 2**63 - 1])
def test_an_offset_beyond_32_and_53_bits_comes_back_as_it_was_g01(
    cli: Cli, url: str, applied_offset: int
) -> None:
    listed = publish(Repository.open(storage_of(url)), describe(offsets=(applied_offset,)))
    (item,) = cli("list", "--json", "-r", url).document["items"]
    assert (item["applied_offset"], item["task"]) == (applied_offset, "0_1")
    shown = cli("show", listed.id, "--json", "-r", url)
    assert f'"applied_offset":{applied_offset},' in shown.out
    assert f" {applied_offset} " in cli("list", "-r", url).out
