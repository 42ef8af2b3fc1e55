"""One test's applications and inputs on the shared broker; nothing outlives the test."""

import uuid
from pathlib import Path
from typing import Any

from tests.support.broker import Broker
from tests.support.streams_app import StreamsApp
from tests.support.streams_input import InputShape, Load
from tests.support.streams_report import Generated


class StreamsLab:
    """Makes topics and applications with names of their own, below one directory."""

    def __init__(self, broker: Broker, directory: Path) -> None:
        self.broker = broker
        self.directory = directory
        self._apps: list[StreamsApp] = []
        self._loads: list[Load] = []

    def new_topic(self) -> str:
        """A name that no other test uses; the generator makes the topic."""
        return f"in-{uuid.uuid4().hex[:8]}"

    def fill(self, topic: str, shape: InputShape) -> Generated:
        """Write all the records of that shape, and wait until they are written."""
        return self.load(topic, shape).wait()

    def load(self, topic: str, shape: InputShape) -> Load:
        """Begin to write records of that shape; `rate` a second, until stopped."""
        directory = self.directory / f"load-{len(self._loads)}"
        load = Load(self.broker.bootstrap, topic, shape, directory)
        self._loads.append(load)
        return load

    def app(self, topic: str, **options: Any) -> StreamsApp:
        """An application on that topic; `options` are the fields of StreamsApp."""
        application = str(options.pop("application", f"app-{uuid.uuid4().hex[:8]}"))
        home = self.directory / application
        options = {"state_dir": home / "state", "work_dir": home / "runs"} | options
        app = StreamsApp(
            bootstrap=self.broker.bootstrap, application=application, topic=topic, **options
        )
        self._apps.append(app)
        return app

    def close(self) -> None:
        for load in self._loads:
            load.process.kill()
        for app in self._apps:
            for run in app.runs:
                run.process.kill()
