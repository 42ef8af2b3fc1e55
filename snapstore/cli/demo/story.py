"""The story: snapshot a store in use, again after a change, lose the disk, bring it back."""

import shlex
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Mapping
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import msgspec

from snapstore.cli.demo.application import OpenStore
from snapstore.cli.demo.server import BUCKET, s3_server, without_own_settings
from snapstore.cli.text import count
from snapstore.errors import IntegrityError, SnapstoreError
from snapstore.model.digest import entries_digest
from snapstore.model.store import StoreLocation
from snapstore.model.units import format_duration, format_size
from snapstore.ports import Layout, StoreBackend
from snapstore.registry import Registry

APPLICATION = "ks440-alos"
BEFORE = 100_000
BETWEEN = 500

_CONFIG = """\
repository:
  url: s3://{bucket}/demo
  options: {{endpoint_url: "{endpoint}", region: us-east-1, proxies: {{}}}}
  accept_unverified_uploads: true   # this test server checks no checksums; real S3 does
state:
  dir: {folder}/state
  cache_dir: {folder}/cache
"""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What the demonstration measured."""

    stores: int
    keys_compared: int
    store_bytes: int
    first_new_bytes: int
    second_new_bytes: int
    second_reused_bytes: int
    first_seconds: float
    second_seconds: float
    restore_seconds: float


class Story:
    """Tells and does it, in a folder of its own. ``say`` takes one line."""

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str],
        say: Callable[[str], None],
        *,
        quiet: bool,
    ) -> None:
        self._folder = folder
        self._environment = without_own_settings(dict(environment))
        self._say = say
        self._quiet = quiet
        self._layout: Layout = Registry().layout("kafka-streams", {})
        self._backend: StoreBackend = Registry().backend("rocksdb", {})

    @property
    def _state(self) -> Path:
        return self._folder / "state"

    def tell(self) -> Figures:
        """Do it all. Raises IntegrityError when what came back is not what was lost."""
        self._unpack()
        with s3_server() as endpoint:
            config = _CONFIG.format(bucket=BUCKET, endpoint=endpoint, folder=self._folder)
            (self._folder / "snapstore.yaml").write_text(config)
            return self._with_server(endpoint)

    def _with_server(self, endpoint: str) -> Figures:
        self._title("An application's state, and a repository in S3")
        self._say(
            f"A state directory that Kafka Streams 4.4.0 left, and an S3 server at {endpoint}."
        )
        self._run("init")
        application = OpenStore(
            self._state / APPLICATION / "0_1/rocksdb/table", f"{APPLICATION}-table-changelog", 1
        )
        self._say(
            f"The application starts and processes {count(BEFORE, 'record')}; the store `table`"
            " stays open."
        )
        application.process(BEFORE)
        self._title("The first snapshot, taken beside the running application")
        first_seconds = self._run("snapshot")
        self._title(f"The application processes {BETWEEN} more records, and only they are sent")
        application.process(BETWEEN)
        second_seconds = self._run("snapshot", "--skip-unchanged")
        self._run("list", "--store", "table", "--long")
        expected = self._digests()
        live = application.digest()
        application.crash()
        self._title("The disk is lost")
        shutil.rmtree(self._state)
        self._say(f"{self._state} is gone.")
        self._title("The stores come back")
        restore_seconds = self._run(
            "restore", "--application", APPLICATION, "--allow-unchecked-changelog"
        )
        keys = self._compare(expected, live)
        history = self._query("list", "--long")["items"]
        table = [item for item in history if item["store"] == "table"]
        second, first = table[0], table[1]
        return Figures(
            stores=len(expected),
            keys_compared=keys,
            store_bytes=second["size_bytes"],
            first_new_bytes=first["new_bytes"],
            second_new_bytes=second["new_bytes"],
            second_reused_bytes=second["size_bytes"] - second["new_bytes"],
            first_seconds=first_seconds,
            second_seconds=second_seconds,
            restore_seconds=restore_seconds,
        )

    def _unpack(self) -> None:
        self._state.mkdir()
        packed = files("snapstore.cli.demo") / "state.tar.xz"
        with as_file(packed) as path, tarfile.open(path) as archive:
            archive.extractall(self._state, filter="data")

    def _run(self, *arguments: str) -> float:
        """Run the command as a person would, in a process of its own; returns its seconds."""
        self._say(f"\n$ snapstore {shlex.join(arguments)}")
        began = time.monotonic()
        self._call(arguments, capture=self._quiet)
        return time.monotonic() - began

    def _query(self, *arguments: str) -> Any:
        return msgspec.json.decode(self._call((*arguments, "--json"), capture=True))

    def _call(self, arguments: tuple[str, ...], *, capture: bool) -> str:
        command = [sys.executable, "-m", "snapstore", "-c", "snapstore.yaml", *arguments]
        done = subprocess.run(
            [*command, "-q"] if capture else command,
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE if capture else None,
            check=False,
            text=True,
        )
        if done.returncode != 0:
            raise SnapstoreError(
                f"snapstore {arguments[0]} ended with exit code {done.returncode}",
                hint="what it said is above",
            )
        return done.stdout or ""

    def _locations(self) -> tuple[StoreLocation, ...]:
        return self._layout.discover(self._state).locations

    def _digests(self) -> dict[str, tuple[str, int]]:
        """Return hash and number of keys of every store's data, as it lies on disk."""
        found = {}
        for location in self._locations():
            with self._backend.capture(location) as capture:
                view = capture.view
                pairs = [
                    pair
                    for database in view.databases
                    for family in view.families(database)
                    if family != "offsets"
                    for pair in view.scan(database, family)
                ]
            found[str(location.store)] = (entries_digest(pairs), len(pairs))
        return found

    def _compare(self, expected: Mapping[str, tuple[str, int]], live: str) -> int:
        restored = self._digests()
        table = f"{APPLICATION}/0_1/table"
        self._say("")
        for store, (digest, keys) in sorted(expected.items()):
            if restored.get(store) != (digest, keys) or (store == table and digest != live):
                raise IntegrityError(f"{store} did not come back as it was", store=store)
            self._say(
                f"{store}: {count(keys, 'key')}, SHA-256 {digest[:16]} before and after: equal"
            )
        return sum(keys for _, keys in expected.values())

    def _title(self, text: str) -> None:
        self._say(f"\n== {text} ==")


def summary(figures: Figures) -> list[str]:
    """Return what was saved, in two sentences."""
    share = figures.second_new_bytes / figures.store_bytes
    return [
        "",
        f"All {count(figures.keys_compared, 'key')} of {figures.stores} stores are there.",
        f"The second snapshot of the changed store sent {format_size(figures.second_new_bytes)}"
        f" of {format_size(figures.store_bytes)} ({share:.1%}) in"
        f" {format_duration(figures.second_seconds)}. The restore took"
        f" {format_duration(figures.restore_seconds)}; without it the application would replay"
        f" {count(BEFORE + BETWEEN, 'record')}.",
    ]
