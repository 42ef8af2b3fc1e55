"""The repository as one memory store sees it: its folder, its name, a lock of its own."""

import msgspec

from snapstore.client import Snapstore
from snapstore.memory.work_folder import WorkFolder
from snapstore.model.identity import StoreId


def client_of(repository: Snapstore, store: StoreId, work: WorkFolder) -> Snapstore:
    """Return a client on the same repository whose state directory is the store's folder.

    Closing it would close the repository's connections; its owner does that.
    """
    sections = repository.config.sections
    state = msgspec.structs.replace(
        sections.state,
        dir=str(work.files),
        layout="plain",
        options={
            "application": store.application,
            "task": store.task,
            "store": store.store,
            "backend": "memory",
        },
        application=store.application,
        guarantee="auto",
        cache_dir=str(work.cache),
    )
    config = msgspec.structs.replace(
        repository.config,
        sections=msgspec.structs.replace(sections, state=state, stores={}),
    )
    return Snapstore(
        config, repository.repository, registry=repository.registry, clock=repository.clock
    )
