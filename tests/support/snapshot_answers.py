"""What the documents of `snapstore snapshot` and `snapstore restore` say, by task and store."""

from dataclasses import dataclass
from typing import Any

Place = tuple[str, str]


@dataclass(frozen=True)
class Taken:
    """One run of `snapshot`: the offsets of what was stored, and why the rest was refused."""

    stored: dict[Place, int | None]
    refused: dict[Place, str]
    new_bytes: int
    reused_bytes: int
    attempts: int

    @classmethod
    def of(cls, document: Any) -> "Taken":
        stored, refused = {}, {}
        for item in document["items"]:
            place = (item["task"], item["store"])
            if item["snapshot"] is not None:
                stored[place] = item["snapshot"]["applied_offset"]
            else:
                refused[place] = item["error"]["code"]
        return cls(
            stored=stored,
            refused=refused,
            new_bytes=document["new_bytes"],
            reused_bytes=document["reused_bytes"],
            attempts=max(item["attempts"] for item in document["items"]),
        )


def resume_offsets(document: Any) -> dict[Place, int]:
    """Where each restored store goes on in its only changelog partition."""
    found = {}
    for item in document["items"]:
        _, task, store = item["store"].split("/")
        (found[(task, store)],) = item["resume_offsets"].values()
    return found
