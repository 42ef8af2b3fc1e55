"""What can be set for the layout `quix`."""

import msgspec


class QuixOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``changelogs`` gives the topic of a store where it is not the one that Quix Streams makes,
    by the store's name, or by ``stream/store`` where several streams have one of that name; or the
    word ``none`` for a store without (``use_changelog_topics=False``).
    """

    changelogs: dict[str, str] = {}
