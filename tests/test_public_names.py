"""The names that the library promises."""

import subprocess
import sys
from pathlib import Path

import snapstore

PROMISED = [
    "CaptureError",
    "ChangelogPartition",
    "Config",
    "ConfigError",
    "ConflictError",
    "DrillReport",
    "FreshnessReport",
    "IntegrityError",
    "Layout",
    "ListedSnapshot",
    "MemoryStore",
    "NotFoundError",
    "ObjectStorage",
    "PartialFailureError",
    "PruneReport",
    "RefusedError",
    "RepairReport",
    "RepositoryReport",
    "RestoreReport",
    "RetentionPolicy",
    "ShownSnapshot",
    "Snapshot",
    "SnapshotReport",
    "Snapstore",
    "SnapstoreError",
    "StoreBackend",
    "StoreId",
    "StoreLocation",
    "UnavailableError",
    "VerifyReport",
    "__version__",
    "create",
    "discover",
    "fsck",
    "load_config",
    "mend",
    "open",
    "prepare",
]


def test_the_public_names_are_these_and_no_others() -> None:
    assert sorted(snapstore.__all__) == PROMISED


def test_every_public_name_is_there_and_documented() -> None:
    for name in snapstore.__all__:
        value = getattr(snapstore, name)
        assert name == "__version__" or value.__doc__, name


def test_every_public_name_is_known_to_type_checkers(tmp_path: Path) -> None:
    user = tmp_path / "user.py"
    user.write_text(
        "import snapstore\n"
        + "".join(f"reveal_type(snapstore.{name})\n" for name in snapstore.__all__)
    )
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(user)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout
    assert checked.stdout.count("Revealed type is") == len(snapstore.__all__)
    assert 'Revealed type is "Any"' not in checked.stdout


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(snapstore, "checkpoint")
