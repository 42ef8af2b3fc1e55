"""What is wrong between catalog and storage, and what a repair does about it."""

from collections.abc import Collection
from datetime import datetime, timedelta

import msgspec

from snapstore.model.listing import ListedSnapshot
from snapstore.operations.survey import Found, Orphan, Survey
from snapstore.repository import keys

PUBLISHING = timedelta(minutes=15)
"""A manifest that is younger may yet be published by the run that wrote it."""


class RepairPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a repair does.

    ``rebuild``: the entry is lost, the rest is whole. ``rewrite``: the entry is damaged, the rest
    is whole. ``quarantine``: bytes are gone for good, the entry goes. ``archived`` cannot be read
    before somebody fetches their bytes back: they are left. ``hopeless``: without an entry and
    without all their bytes. ``newer``: written by a newer snapstore, and left alone. ``broken`` are
    blobs that no snapshot may rely on any more. ``strange`` keys of the catalog are none, and stop
    every sweep; ``garbage`` means nothing in other folders, and hinders nobody. ``young`` manifests
    without an entry are passed over: the run that wrote them may yet publish them.
    """

    rebuild: tuple[ListedSnapshot, ...] = ()
    rewrite: tuple[Found, ...] = ()
    quarantine: tuple[Found, ...] = ()
    archived: tuple[Found, ...] = ()
    hopeless: tuple[Orphan, ...] = ()
    newer: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    strange: tuple[str, ...] = ()
    garbage: tuple[str, ...] = ()
    young: tuple[Orphan, ...] = ()

    @property
    def nothing(self) -> bool:
        """Whether catalog and storage agree."""
        return not (
            self.rebuild
            or self.rewrite
            or self.quarantine
            or self.archived
            or self.newer
            or self.strange
        )


def plan_repair(
    found: Survey, *, storage_now: datetime, corrupt: Collection[str] = ()
) -> RepairPlan:
    """Decide what to do about everything that a survey has found.

    ``corrupt`` are blobs whose bytes were read and are not those of their name.
    """
    rewrite, quarantine, archived, newer = [], [], [], []
    for each in found.snapshots:
        bad = [name for name in each.blobs or () if name in corrupt]
        if each.newer:
            newer.append(each.listed.id)
        elif bad:
            quarantine.append(
                msgspec.structs.replace(
                    each,
                    fault="corrupt",
                    damage=f"blob {bad[0]} does not hash to its name",
                    broken=(*each.broken, *bad),
                )
            )
        elif each.fault == "entry":
            rewrite.append(each)
        elif each.fault == "archived":
            archived.append(each)
        elif each.fault is not None:
            quarantine.append(each)
    rebuild, hopeless, young = [], [], []
    for orphan in found.orphans:
        if orphan.id in found.removed:
            continue
        if storage_now - orphan.stat.modified_at <= PUBLISHING:
            young.append(orphan)
            continue
        if orphan.newer:
            newer.append(orphan.id)
        elif orphan.listed and not orphan.damage and not set(corrupt).intersection(orphan.blobs):
            rebuild.append(orphan.listed)
        else:
            hopeless.append(orphan)
    broken = {name for each in quarantine for name in each.broken} - found.condemned.keys()
    return RepairPlan(
        rebuild=tuple(rebuild),
        rewrite=tuple(rewrite),
        quarantine=tuple(quarantine),
        archived=tuple(archived),
        hopeless=tuple(hopeless),
        newer=tuple(newer),
        broken=tuple(sorted(broken)),
        strange=tuple(key for key in found.foreign if key.startswith(keys.CATALOG)),
        # What lies among the blobs may be large, and is nobody's to move.
        garbage=tuple(
            key for key in found.foreign if not key.startswith((keys.CATALOG, keys.BLOBS))
        ),
        young=tuple(young),
    )


class RepositoryReport(msgspec.Struct, frozen=True, kw_only=True):
    """Catalog and storage compared, both ways.

    ``found`` is what a repair would do. ``snapshots`` are listed; ``blobs`` are all that lie there,
    ``unnamed_blobs`` those among them that no snapshot names, which prunes free in time.
    ``foreign`` keys mean nothing in a repository; ``unfinished`` manifests may yet be published,
    ``removed`` ones wait for a prune.
    """

    found: RepairPlan
    snapshots: int
    blobs: int
    blob_bytes: int
    unnamed_blobs: int
    unnamed_bytes: int
    condemned_blobs: int
    unfinished: int
    removed: int
    foreign: tuple[str, ...]

    @property
    def sound(self) -> bool:
        return self.found.nothing


class Repaired(msgspec.Struct, frozen=True, kw_only=True):
    """One snapshot that a repair dealt with, and the reason."""

    listed: ListedSnapshot
    reason: str


class RepairReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a repair did, or would do.

    ``rebuilt`` are in the catalog again; ``quarantined`` are out of it, their entries kept below
    ``quarantine/<run>/``: those snapshots are lost. ``left`` need a person. ``condemned`` blobs are
    relied on by no snapshot any more; ``strange`` keys were moved to the quarantine too, and so was
    ``garbage``. ``passed_over`` are manifests too young to be judged.
    """

    dry_run: bool
    run: str
    rebuilt: tuple[Repaired, ...]
    quarantined: tuple[Repaired, ...]
    left: tuple[Repaired, ...]
    condemned: tuple[str, ...]
    strange: tuple[str, ...]
    garbage: tuple[str, ...]
    passed_over: tuple[str, ...]
    notes: tuple[str, ...]
