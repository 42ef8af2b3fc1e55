"""Where the samples of `verify` on this host go on, so that after some runs all has been read."""

from pathlib import Path

import msgspec

from snapstore.model.report import Noted
from snapstore.ports import Listener

_FEWEST = 64
"""Of so many repositories and selections the place is kept, the latest ones."""


class SamplePlaces:
    """A small file; one that is lost, or of somebody else, lets the next sample begin anew."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def after(self, of: str) -> str:
        """Return the name after which the next sample of that selection begins."""
        return self._read().get(of, "")

    def note(self, of: str, name: str, listener: Listener) -> None:
        """Note how far a sample has come; where that fails ``listener`` is told."""
        known = {key: value for key, value in self._read().items() if key != of}
        kept = dict([*known.items(), (of, name)][-_FEWEST:])
        new = self._path.with_suffix(".new")
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            new.write_bytes(msgspec.json.encode(kept))
            new.replace(self._path)
        except OSError as error:
            reason = error.strerror or str(error)
            listener(
                Noted(
                    message=f"where the next sample goes on could not be noted: {reason}: it reads"
                    " the same again"
                )
            )

    def _read(self) -> dict[str, str]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, str])
        except (OSError, msgspec.DecodeError):
            return {}
