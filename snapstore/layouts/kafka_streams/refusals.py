"""Why the offset of a store cannot be told, in words that help."""

from snapstore.errors import ExactlyOnceHotError, UnknownOffsetError
from snapstore.model.identity import StoreId

_OTHER_WAYS = "stop the application cleanly, or take the snapshot from the changelog"


def unknown(store: StoreId, why: str, hint: str = _OTHER_WAYS) -> UnknownOffsetError:
    return UnknownOffsetError(
        f"the files of {store} do not say which offset they hold: {why}",
        hint=hint,
        store=str(store),
    )


def ask_for_topic(store: StoreId, topics: tuple[str, ...]) -> UnknownOffsetError:
    return UnknownOffsetError(
        f"cannot tell which topic is the changelog of {store}: {', '.join(topics)} could be",
        hint=f"configure the changelog of the store {store.store}: a topic, or none",
        store=str(store),
        topics=list(topics),
    )


def ask_whether_any(store: StoreId, why: str) -> UnknownOffsetError:
    return unknown(
        store,
        why,
        hint=f"of a store without changelog say stores.NAME.changelog: none; else {_OTHER_WAYS}",
    )


def exactly_once(store: StoreId, why: str) -> ExactlyOnceHotError:
    return ExactlyOnceHotError(
        f"the files of {store} may hold writes of a transaction that aborts: {why}",
        hint=_OTHER_WAYS,
        store=str(store),
    )
