"""What can be set for the layout `quix`."""

import msgspec


class QuixOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``changelogs`` gives the topic of a store where it is not the one that Quix Streams makes,
    by the store's name, or by ``stream/store`` where several streams have one of that name; or the
    word ``none`` for a store without (``use_changelog_topics=False``).

    ``assume_stopped_without_locks``: where the file system has no locks, nothing tells whether the
    application runs; it is taken for stopped.
    """

    changelogs: dict[str, str] = {}
    assume_stopped_without_locks: bool = False
