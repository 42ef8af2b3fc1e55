"""Compare catalog and storage: is everything there that is named, and named what is there?"""

from snapstore.operations.repair_plan import RepositoryReport, plan_repair
from snapstore.operations.survey import survey
from snapstore.ports import Clock
from snapstore.repository import Repository, keys


def verify_repository(
    repository: Repository, *, clock: Clock, parallel: int = 8
) -> RepositoryReport:
    """Look at every key, catalog entry and manifest; nothing is written, no blob is read.

    Raises what the storage raises: that it cannot be reached is no damage.
    """
    now = clock()
    found = survey(repository, parallel=parallel)
    known = (keys.MARKER, keys.MARKER_COPY, *keys.FOLDERS)
    strangers = [stat.key for stat in repository.storage.list("") if not stat.key.startswith(known)]
    named = {name for each in found.snapshots for name in each.blobs or ()}
    named |= {name for orphan in found.orphans for name in orphan.blobs}
    unnamed = [stat.size for name, stat in found.blobs.items() if name not in named]
    plan = plan_repair(found, storage_now=now)
    return RepositoryReport(
        found=plan,
        snapshots=len(found.snapshots),
        blobs=len(found.blobs),
        blob_bytes=sum(stat.size for stat in found.blobs.values()),
        unnamed_blobs=len(unnamed),
        unnamed_bytes=sum(unnamed),
        condemned_blobs=len(found.condemned.keys() & found.blobs.keys()),
        unfinished=len(plan.young),
        removed=sum(orphan.id in found.removed for orphan in found.orphans),
        foreign=(*found.foreign, *found.litter, *strangers),
    )
