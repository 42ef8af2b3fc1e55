"""The example of a plug-in, installed from its folder into an environment of its own."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from tests.support.broker import Broker
from tests.support.command import Command
from tests.support.moto import make_bucket
from tests.support.processes import ChildProcess
from tests.support.topic import bounds, fold, read_partition

EXAMPLE = Path(__file__).parents[2] / "examples" / "custom_backend"
TOPIC = "shop-counts-changelog"
KEYS = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s"}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment that has what this one has, and the plug-in; returns its Python."""
    folder = tmp_path_factory.mktemp("environment")
    run([sys.executable, "-m", "venv", "--without-pip", folder])
    python = folder / "bin" / "python"
    packages = sysconfig.get_path("purelib", "venv", {"base": str(folder)})
    ours = sysconfig.get_path("purelib")
    Path(packages, "ours.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
    source = folder / "source"
    shutil.copytree(EXAMPLE, source, ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--quiet"]
    run([*pip, "install", *offline, source])
    return python


def run(command: Sequence[object]) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
        timeout=800,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_listed_with_its_origin_and_version(python: Path, tmp_path: Path) -> None:
    snapstore = Command(tmp_path / "home", str(tmp_path / "r"), python=str(python))
    items = snapstore("plugins").document["items"]
    ours = {item["kind"]: item for item in items if item["name"] == "sqlite"}
    assert ours.keys() == {"backends", "layouts"}
    for item in ours.values():
        assert item["origin"] == "snapstore-sqlite 1.0.0"
        assert item["error"] is None
        assert item["target"].startswith("snapstore_sqlite.")


def test_a_typo_in_its_name_or_its_options_is_answered_with_what_there_is(
    python: Path, tmp_path: Path
) -> None:
    for sections, hint in (
        ({"state": {"layout": "sqlit"}}, "did you mean sqlite?"),
        ({"backends": {"sqlite": {"range_byte": 4096}}}, "did you mean range_bytes?"),
    ):
        home, repository = tmp_path / "home", str(tmp_path / "r")
        snapstore = Command(home, repository, sections=sections, python=str(python))
        assert snapstore("config", "check", expect=2).error["hint"] == hint


@pytest.mark.slow
def test_its_own_tests_and_the_contract_suites_pass(python: Path, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE / "tests", tmp_path / "tests")
    shutil.copy(EXAMPLE / "pyproject.toml", tmp_path)
    answer = run([python, "-m", "pytest", "-q", "--rootdir", tmp_path, tmp_path / "tests"])
    passed = re.search(r"^(\d+) passed in", answer, re.MULTILINE)
    assert passed is not None
    assert int(passed[1]) > 50
    assert "skipped" not in answer


@pytest.mark.slow
def test_it_has_everything_that_the_ports_ask_for(python: Path, tmp_path: Path) -> None:
    """Mypy knows; at run time a method that is missing shows only when it is called."""
    (tmp_path / "ports.py").write_text(
        "from snapstore.ports import InstallingBackend, Layout, ReplayLayout, WritableBackend\n"
        "from snapstore_sqlite.backend import SQLiteBackend\n"
        "from snapstore_sqlite.layout import SQLiteLayout\n"
        "backends: tuple[WritableBackend, InstallingBackend] = (SQLiteBackend(), SQLiteBackend())\n"
        "layouts: tuple[Layout, ReplayLayout] = (SQLiteLayout(), SQLiteLayout())\n"
    )
    mypy = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache"]
    search = os.pathsep.join([str(EXAMPLE), str(EXAMPLE.parents[1])])
    run(["env", f"MYPYPATH={search}", *mypy, tmp_path / "ports.py", EXAMPLE / "snapstore_sqlite"])


@pytest.mark.kafka
def test_a_store_that_was_lost_is_restored_from_s3_and_brought_up_to_date(
    python: Path, tmp_path: Path, broker: Broker, moto_url: str
) -> None:
    make_bucket(moto_url, "sqlite-example")
    broker.create_topic(TOPIC, partitions=2, config={"cleanup.policy": "compact"})
    state_dir = tmp_path / "state"
    snapstore = Command(
        tmp_path / "home",
        "s3://sqlite-example/r",
        options={"endpoint_url": moto_url, "region": "us-east-1"},
        sections={
            "kafka": {"bootstrap": broker.bootstrap},
            "state": {"dir": str(state_dir), "layout": "sqlite"},
            "backends": {"sqlite": {"range_bytes": 4096}},
        },
        keys=KEYS,
        python=str(python),
    )
    snapstore("init", "--accept-unverified-uploads")
    program = [str(python), str(EXAMPLE / "application.py"), broker.bootstrap, str(state_dir)]

    run([*program, "1000"])
    first = snapstore("snapshot").document
    run([*program, "1001"])
    second = snapstore("snapshot").document
    assert first["new_files"] > 2 * 7
    assert 2 <= second["new_files"] <= 2 * 3

    with running(program, tmp_path / "running") as application:
        wait_for_records(broker, 1100, application)
        hot = snapstore("snapshot").document
        wait_for_records(broker, bounds(broker.bootstrap, TOPIC, 0).end + 200, application)
        in_use = snapstore("restore", "--application", "shop", "--replace", expect=5)
    assert hot["reused_files"] > 0
    assert in_use.error["code"] == "store_in_use"
    shutil.rmtree(state_dir)

    snapstore("drill")
    snapstore("restore", "--application", "shop")
    snapstore("replay")
    for partition in range(2):
        found = contents(python, state_dir, partition)
        assert found == expected(broker, partition)

    again = ChildProcess([*program, "0"], tmp_path / "again")
    assert again.wait(120) == 0, again.tail()
    assert again.tail().splitlines() == ["0 records recovered", "0 records recovered", "done"]


@contextmanager
def running(program: list[str], log: Path) -> Iterator[ChildProcess]:
    """Run the application without an end, and kill it when the block is left."""
    application = ChildProcess([*program, "1000000", "0.002"], log)
    try:
        yield application
    finally:
        application.kill()


def wait_for_records(broker: Broker, count: int, application: ChildProcess) -> None:
    deadline = time.monotonic() + 120
    while bounds(broker.bootstrap, TOPIC, 0).end < count:
        assert application.running, application.tail()
        assert time.monotonic() < deadline, application.tail()
        time.sleep(0.05)


def contents(python: Path, state_dir: Path, partition: int) -> dict[str, str]:
    """Read a store as its application does."""
    folder = state_dir / "shop" / str(partition) / "counts"
    code = (
        "import json, sys; from pathlib import Path; from snapstore_sqlite.store import connect\n"
        "rows = connect(Path(sys.argv[1])).execute('SELECT * FROM entries UNION ALL "
        "SELECT * FROM offsets')\n"
        "print(json.dumps({key.decode(): value.decode() for key, value in rows}))"
    )
    content = run([python, "-c", code, folder / "state.db"])
    found: dict[str, str] = msgspec.json.decode(content, type=dict[str, str])
    return found


def expected(broker: Broker, partition: int) -> dict[str, str]:
    """Return what the changelog makes of a store, and the offset of its last record."""
    records = read_partition(broker.bootstrap, TOPIC, partition)
    entries = {
        key.decode(): record.value.decode()
        for key, record in fold(records).items()
        if record.value is not None
    }
    return {**entries, f"{TOPIC}:{partition}": str(records[-1].offset)}
