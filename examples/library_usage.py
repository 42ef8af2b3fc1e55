"""The library without the command line: library_usage.py STATE_DIR REPOSITORY TARGET."""

import sys

import snapstore


def main(state_dir: str, url: str, target: str) -> None:
    for found in snapstore.discover(state_dir).stores:
        print(f"found {found.location.store}: {found.size_bytes} bytes")

    with snapstore.create(url) as repository:
        report = repository.snapshot(state_dir, tags={"by": "library"}, listener=print_notes)
        for outcome in report.failed:
            print(f"no snapshot of {outcome.store}: {outcome.error}")

    with snapstore.open(url) as repository:
        listing = repository.list(latest=1)
        for listed in listing.snapshots:
            print(f"{listed.id[:12]} {listed.store} up to offset {listed.applied_offset}")

        newest = repository.find(str(listing.snapshots[0].store))
        print(f"{newest.description.store} holds {newest.size_bytes} bytes in {newest.files} files")

        try:
            repository.restore([newest.id], target=target)
        except snapstore.RefusedError as error:
            print(f"refused ({error.code}): {error}; {error.hint}")
        restored = repository.restore(
            [newest.id], target=target, allow_unchecked_changelog=True, listener=print_notes
        )
        for store in restored.stores:
            print(f"restored {store.store}; reading goes on at {dict(store.resume_offsets)}")

        assert repository.verify(read_data=True).sound


def print_notes(event: object) -> None:
    """A listener is any function of one event; it may be called from several threads."""
    message = getattr(event, "message", None)
    if message is not None:
        print(f"note: {message}")


if __name__ == "__main__":
    main(*sys.argv[1:])
