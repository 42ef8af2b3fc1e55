"""Answer a run in which nothing changed from what the last one saw."""

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from snapstore import __version__
from snapstore.client.moments import run_id, utc_now
from snapstore.client.own_cache import last_runs
from snapstore.client.parts import configured_layout, state_dir
from snapstore.config import Config
from snapstore.errors import CaptureError
from snapstore.model.identity import StoreId
from snapstore.model.store import StoreLocation
from snapstore.operations.fingerprint import Fingerprint, fingerprint
from snapstore.operations.snapshot_plan import Selection, SnapshotPlan, plan_snapshot
from snapstore.operations.snapshot_report import SnapshotReport
from snapstore.operations.unchanged import as_before, listed_lately, not_asked
from snapstore.ports import Clock, Layout
from snapstore.registry import BUILT_IN, Registry, url_scheme

if TYPE_CHECKING:
    from snapstore.operations.capture_choice import CaptureMode

_ENVIRONMENT = ("AWS_", "BOTO")
_AWS_FILES = {
    "AWS_CONFIG_FILE": "~/.aws/config",
    "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials",
}


def is_recorded(config: Config, layout: str) -> bool:
    """Whether what a run sees can stand for the next one.

    With Kafka it cannot: the changelog may have changed although no file did.
    """
    return (
        config.kafka.bootstrap is None
        and config.repository.url is not None
        and url_scheme(config.repository.url) in BUILT_IN["storages"]
        and layout in BUILT_IN["layouts"]
    )


def place_of(config: Config, directory: Path, layout: str) -> str:
    """Return the name of the record of a state directory in a repository."""
    return "\0".join((config.repository.url or "", str(directory.resolve()), layout))


def settings_of(config: Config, env: Mapping[str, str]) -> str:
    """Return a digest of what an answer hangs on beside the files, the program itself included.

    The environment and its files may lead the same URL to another storage.
    """
    chosen = {
        name: value
        for name, value in sorted(env.items())
        if name.startswith(_ENVIRONMENT) or name.lower().endswith("_proxy") or name == "HOME"
    }
    files = [_state_of(env.get(name) or usual) for name, usual in _AWS_FILES.items()]
    sections = (config.repository, config.state, config.backends, config.stores)
    told = (__version__, sections, chosen, files)
    return hashlib.sha256(msgspec.msgpack.encode(told)).hexdigest()


def fingerprints_of(
    locations: Iterable[StoreLocation], layout: Layout
) -> dict[StoreId, Fingerprint]:
    """Look at each store from outside; those that do not tell enough are left out."""
    found = {location.store: fingerprint(location, layout) for location in locations}
    return {store: each for store, each in found.items() if each is not None}


def unchanged(
    config: Config,
    *,
    stores: Sequence[str] = (),
    tasks: Sequence[str] = (),
    capture: "CaptureMode | None" = None,
    clock: Clock = utc_now,
    registry: Registry | None = None,
) -> SnapshotReport | None:
    """Return the report of a run with ``skip_unchanged`` without asking the repository.

    None unless every store of the run looks as it did when the repository was last asked, no
    longer ago than ``snapshot.confirm_after``. A local folder is always asked, which is as fast.
    Raises what discovering the stores raises.
    """
    within = config.snapshot.confirm_after
    name = config.state.layout
    asked = capture or config.snapshot.capture
    if (
        not within
        or config.state.dir is None
        or asked not in ("auto", "disk")
        or not is_recorded(config, name)
        or url_scheme(config.repository.url or "") == "file"
    ):
        return None
    place = state_dir(config)
    run = last_runs(config).load(place_of(config, place, name))
    settings = settings_of(config, os.environ)
    if run is None or run.settings != settings:
        return None
    layout = configured_layout(config, registry or Registry())
    plan = _plan(config, layout, place, stores, tasks)
    if plan.unread:
        return None
    chosen = [location.store for location in plan.locations]
    now = clock()
    known = [run.stores.get(str(store)) for store in chosen]
    if not all(seen is not None and listed_lately(seen, now, within) for seen in known):
        return None
    try:
        in_use = {location.store for location in layout.which_in_use(plan.locations)}
    except CaptureError:
        return None
    seen = as_before(run, settings, fingerprints_of(plan.locations, layout), in_use)
    if len(seen) != len(chosen):
        return None
    outcomes = tuple(not_asked(store, seen[store]) for store in chosen)
    return SnapshotReport(run=run_id(now), outcomes=outcomes, notes=plan.notes)


def _plan(
    config: Config, layout: Layout, place: Path, stores: Sequence[str], tasks: Sequence[str]
) -> SnapshotPlan:
    application = config.state.application
    selection = Selection(
        applications=() if application is None else (application,),
        tasks=tuple(tasks),
        stores=tuple(stores),
    )
    return plan_snapshot(layout.discover(place, application), selection)


def _state_of(path: str) -> tuple[int, ...]:
    try:
        status = Path(path).expanduser().stat()
    except OSError:
        return ()
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
