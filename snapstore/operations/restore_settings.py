"""How a restore is done, and what it works with."""

from collections.abc import Mapping

import msgspec

from snapstore.operations.lineage import Remember
from snapstore.operations.restore_choice import Check
from snapstore.operations.restore_replay import StagedReplay
from snapstore.operations.stage_files import Permissions
from snapstore.operations.swap import Reached
from snapstore.ports import Clock, Layout, Listener, StoreBackend
from snapstore.repository import Repository


class RestoreOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a restore is done; every permission to do something dangerous is off.

    ``application_replays``: the application itself reads the records after the snapshot, so only
    time can prove that no deletion is lost. ``skip_unrestorable``: a store of which no snapshot can
    be used is left out. ``delete_noted``: what the changelog deletes after a snapshot is deleted in
    its files; not for a replay that ends before. ``set_aside`` gives reasons by names of stores:
    what is there of those goes to quarantine rather than away. ``version`` is the one of Kafka
    Streams that will start, where that is known. ``permissions.owner`` None: as root, the owner of
    the target directory.
    """

    replace: bool = False
    keep_replaced: bool = False
    allow_unchecked_changelog: bool = False
    application_replays: bool = True
    delete_noted: bool = True
    skip_unrestorable: bool = False
    set_aside: Mapping[str, str] = {}
    version: str | None = None
    permissions: Permissions = Permissions()
    parallel: int = 8
    limit_bytes_per_second: int | None = None


class RestorePorts(msgspec.Struct, frozen=True, kw_only=True):
    """What a restore works with. ``backends`` are by name.

    ``check`` proves a snapshot against its changelog; None where Kafka is not configured.
    ``replay`` reads the records after the snapshots; None where the application does.
    ``remember`` is told what got into place. ``reached`` is called at named points of the work.
    """

    repository: Repository
    layout: Layout
    backends: Mapping[str, StoreBackend]
    check: Check | None
    clock: Clock
    listener: Listener
    replay: StagedReplay | None = None
    remember: Remember | None = None
    reached: Reached = lambda _: None
