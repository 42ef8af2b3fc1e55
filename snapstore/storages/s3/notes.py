"""What an operator should know of a storage although the work goes on."""

import threading

from snapstore.model.report import Noted, nobody
from snapstore.ports import Listener


class Notes:
    """Tells each note once; what is noted before somebody listens is told then."""

    def __init__(self) -> None:
        self._listener: Listener = nobody
        self._said: list[str] = []
        self._lock = threading.Lock()

    def __call__(self, message: str) -> None:
        with self._lock:
            if message in self._said:
                return
            self._said.append(message)
            listener = self._listener
        listener(Noted(message=message))

    def listen(self, listener: Listener) -> None:
        with self._lock:
            self._listener = listener
            said = [*self._said]
        for message in said:
            listener(Noted(message=message))
