"""A custom store of more files than this process may hold open, or a manifest can hold."""

import os
import resource
import subprocess
import sys
from pathlib import Path

_OPEN_FILES = 256
_SMALL, _TINY, _LARGE = 500, 800, 300


def _store(task: Path) -> dict[str, bytes]:
    """Fill a store of files; return what is in them, by their names."""
    files = {f"part-{n % 7}/small-{n}": os.urandom(60 << 10) for n in range(_SMALL)}
    files |= {f"tiny-{n}": b"%d" % n for n in range(_TINY)}
    files |= {f"_{n}.cfs": os.urandom(66 << 10) for n in range(_LARGE)}
    files["empty"] = b""
    for name, content in files.items():
        path = task / "my-custom.store" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (task / ".checkpoint_my-custom.store").write_bytes(
        b"0\n1\napp-my-custom.store-changelog 4 77\n"
    )
    return files


def _run(*arguments: object, home: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "snapstore", *map(str, arguments)],
        env={"PATH": os.environ["PATH"], "HOME": str(home)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, _OPEN_FILES)),
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done.stdout


def test_a_store_of_more_files_than_may_be_open_or_fit_a_manifest_comes_back_h59(
    tmp_path: Path,
) -> None:
    task = tmp_path / "state" / "app" / "1_4"
    files = _store(task)
    config = tmp_path / "snapstore.yaml"
    config.write_text('backends: {files: {immutable: ["_*"]}}\n')
    on = ("-c", config, "-r", tmp_path / "repository")
    _run("init", *on, home=tmp_path)
    _run("snapshot", *on, "--state-dir", tmp_path / "state", home=tmp_path)
    _run("verify", *on, "--read-data", home=tmp_path)
    stored = (tmp_path / "repository" / "manifests").rglob("*")
    (manifest,) = (path for path in stored if path.is_file())
    assert manifest.stat().st_size < 24 << 20
    back = ("--application", "app", "--target", tmp_path / "back", "--allow-unchecked-changelog")
    _run("restore", *on, *back, home=tmp_path)
    root = tmp_path / "back" / "app" / "1_4" / "my-custom.store"
    found = {str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()}
    assert found.keys() == files.keys()
    assert all(found[name].read_bytes() == content for name, content in files.items())
