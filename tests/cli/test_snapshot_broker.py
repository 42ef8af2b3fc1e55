"""What a run says of a snapshot that it saves, and that could not be restored now."""

from pathlib import Path

from snapstore.testing.changelog_contract import Written, numbered
from tests.support.broker import Broker
from tests.support.command import Command
from tests.support.logged_store import LoggedStore


def test_h01_a_snapshot_that_cannot_be_restored_now_ends_with_exit_code_3_and_says_why(
    broker: Broker, tmp_path: Path
) -> None:
    """An offset without a record follows: compaction, or a transaction that was aborted."""
    logged = LoggedStore(broker, tmp_path)
    logged.write(numbered(10))
    logged.keep(9)
    logged.write([Written(b"k1", None)])
    logged.abort([Written(b"k2", b"aborted")])
    snapstore = Command(
        tmp_path / "home",
        str(tmp_path / "repository"),
        sections={"kafka": {"bootstrap": broker.bootstrap}},
    )
    asked = ("snapshot", logged.name, "--state-dir", logged.state_dir)

    told = snapstore(*asked, "--from-disk", expect=3)

    (item,) = told.document["items"]
    assert (item["status"], item["restorable"]) == ("stored", False)
    assert item["unrestorable"]["code"] == "tombstone_horizon"
    assert "2 offsets after it hold no record any more" in item["unrestorable"]["message"]
    (fresh,) = snapstore("status", expect=3).document["items"]
    assert fresh["standing"] == "unusable"

    (item,) = snapstore(*asked).document["items"]
    assert (item["restorable"], item["unrestorable"]) == (True, None)
    assert "made from the changelog" in item["remarks"][0]
    snapstore("restore", "--application", "orders", "--target", logged.target)
    assert logged.rows() == logged.logged()
