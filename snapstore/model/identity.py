"""Names of things: changelog partitions, stores and tasks."""

import re
from typing import Self

import msgspec

_NATURAL = re.compile(r"\d+|\D+")


class ChangelogPartition(msgspec.Struct, frozen=True, order=True):
    """One partition of a changelog topic, printed and typed ``topic:partition``."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}:{self.partition}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``topic:partition``.

        Raises ValueError when the text is not of that form.
        """
        topic, colon, number = text.rpartition(":")
        if not (topic and colon and number.isascii() and number.isdigit()):
            raise ValueError(f"not of the form topic:partition: {text!r}")
        return cls(topic, int(number))


class StoreId(msgspec.Struct, frozen=True):
    """A named store of one task of one application, printed ``application/task/store``.

    ``task`` is Kafka Streams' ``<subtopology>_<partition>`` (``__NAME__/0_1`` in a named
    topology), or ``global``; other layouts put their own partition there. An empty name stands for
    all that there may be.
    """

    application: str
    task: str
    store: str

    def __str__(self) -> str:
        return "/".join(part for part in (self.application, self.task, self.store) if part)

    @property
    def order(self) -> tuple[object, ...]:
        """Sort key in which task 0_2 comes before 0_10."""
        return (self.application, natural_order(self.task), self.store)


def natural_order(text: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key that compares runs of digits as numbers."""
    return tuple(
        (0, int(part), "") if part.isascii() and part.isdigit() else (1, 0, part)
        for part in _NATURAL.findall(text)
    )
