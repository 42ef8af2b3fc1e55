"""Sentences on stores: what holds for several is said once."""

from collections.abc import Iterable, Sequence

from snapstore.cli.text import count, plain
from snapstore.errors import SnapstoreError
from snapstore.model.identity import StoreId

_STORE = "\0"


def told(sentences: Iterable[tuple[StoreId, str]]) -> list[str]:
    """Return sentences as paragraphs; one that fits several stores comes once, with their names."""
    groups: dict[str, dict[StoreId, None]] = {}
    for store, sentence in sentences:
        groups.setdefault(sentence.replace(str(store), _STORE), {})[store] = None
    return [_paragraph(sentence, tuple(stores)) for sentence, stores in groups.items()]


def complaints(errors: Iterable[tuple[StoreId, SnapstoreError]]) -> list[str]:
    """Return what is wrong with stores, and below it once each thing that can be done."""
    told_of = list(errors)
    hints = dict.fromkeys(error.hint for _, error in told_of if error.hint is not None)
    return [
        *told((store, error.message) for store, error in told_of),
        *(f"  hint: {plain(hint)}" for hint in hints),
    ]


def named(stores: Iterable[StoreId], indent: str = "  ") -> str:
    """Return the names of stores on one line."""
    return indent + ", ".join(plain(str(store)) for store in stores)


def _paragraph(sentence: str, stores: Sequence[StoreId]) -> str:
    if len(stores) > 1:
        said = plain(sentence.replace(_STORE, "each"))
        return f"{count(len(stores), 'store')}: {said}\n{named(stores)}"
    name = str(stores[0])
    said = sentence.replace(_STORE, name)
    return plain(said if _STORE in sentence else f"{name}: {said}")
