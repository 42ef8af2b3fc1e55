"""A repository in which somebody has exchanged things: nothing of it is restored."""

import hashlib
from pathlib import Path

import msgspec
import pytest
import zstandard

from snapstore.errors import IntegrityError, ManifestInvalidError
from snapstore.model.listing import ListedSnapshot
from snapstore.repository import keys
from tests.support.restore_lab import RestoreLab
from tests.support.streams_store import Pairs, make_window, some_pairs

OLD, NEW = "window.1000", "window.2000"


@pytest.fixture
def lab(tmp_path: Path) -> RestoreLab:
    """One snapshot of a window store with two segments."""
    lab = RestoreLab(tmp_path)
    segments = {
        1000: Pairs(pairs=some_pairs(300), applied_offset=99),
        2000: Pairs(pairs=some_pairs(200, start=300), applied_offset=99),
    }
    make_window(tmp_path / "source", "0_0", "window", segments)
    lab.save(tmp_path / "source")
    return lab


def listed(lab: RestoreLab) -> ListedSnapshot:
    (one,) = lab.listed()
    return one


def test_segments_whose_bytes_were_exchanged_are_refused(lab: RestoreLab, tmp_path: Path) -> None:
    blobs = lab.blobs_of(listed(lab))
    tables = {
        segment: max(
            (blob for name, blob in blobs.items() if f"/{segment}/" in name),
            key=lambda blob: blob.stat().st_size,
        )
        for segment in (OLD, NEW)
    }
    old, new = (tables[segment].read_bytes() for segment in (OLD, NEW))
    for blob, content in ((tables[OLD], new), (tables[NEW], old)):
        blob.chmod(0o600)
        blob.write_bytes(content)
    with pytest.raises(IntegrityError, match="blob"):
        lab.restore(tmp_path / "target")
    assert not [*(tmp_path / "target").rglob("CURRENT")]


def test_a_manifest_in_which_two_databases_have_changed_names_is_refused(
    lab: RestoreLab, tmp_path: Path
) -> None:
    path = tmp_path / "repository" / keys.manifest(listed(lab).id)
    body = zstandard.ZstdDecompressor().decompress(path.read_bytes(), max_output_size=1 << 24)
    changed = body.replace(OLD.encode(), b"%").replace(NEW.encode(), OLD.encode())
    changed = changed.replace(b"%", NEW.encode())
    assert msgspec.json.decode(changed) != msgspec.json.decode(body)
    assert hashlib.sha256(body).hexdigest() == listed(lab).id
    path.chmod(0o600)
    path.write_bytes(zstandard.ZstdCompressor().compress(changed))
    with pytest.raises(ManifestInvalidError):
        lab.restore(tmp_path / "target")
    assert not [*(tmp_path / "target").rglob("CURRENT")]
