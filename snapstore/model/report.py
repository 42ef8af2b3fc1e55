"""What an operation tells while it works."""

from typing import Literal

import msgspec

from snapstore.model.identity import StoreId

Stage = Literal["hash", "upload", "download", "verify", "replay"]


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is about to do: the bytes of each store, by its name.

    Those of a snapshot are estimates, until the store's files are held and it is started.
    """

    sizes: dict[str, int]


class StoreStarted(msgspec.Struct, frozen=True, kw_only=True):
    """Work on one store began; ``total`` is in ``unit``, None where it cannot be known yet."""

    store: StoreId
    stage: Stage
    total: int | None
    unit: Literal["bytes", "records"] = "bytes"


class Advanced(msgspec.Struct, frozen=True, kw_only=True):
    """``amount`` more bytes or records of that store are done.

    ``moved`` False: there was nothing to do for them, so they tell nothing of how fast it goes.
    """

    store: StoreId
    stage: Stage
    amount: int
    moved: bool = True


class StoreFinished(msgspec.Struct, frozen=True, kw_only=True):
    """Work on one store ended; ``outcome`` is a sentence."""

    store: StoreId
    outcome: str
    ok: bool


class Noted(msgspec.Struct, frozen=True, kw_only=True):
    """Something that the operator should know although the work goes on."""

    message: str


Event = Planned | StoreStarted | Advanced | StoreFinished | Noted


def nobody(event: Event) -> None:
    """The listener where none is given."""
    del event
