"""The command line as a process of its own, with one repository and no settings from elsewhere."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.answer import Answer
from tests.support.processes import ChildProcess


@dataclass(frozen=True)
class Command:
    """Calls with a configuration file and a home of their own below `home`.

    `sections` are added to the file; `keys` to the environment. `python` has snapstore installed.
    """

    home: Path
    repository: str
    options: Mapping[str, object] = field(default_factory=dict)
    sections: Mapping[str, object] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    python: str = sys.executable

    def __call__(self, *arguments: object, expect: int | tuple[int, ...] = 0) -> Answer:
        """Run to the end with --json; AssertionError when the exit code is another."""
        done = subprocess.run(
            self._line(arguments),
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        answer = Answer(done.returncode, done.stdout, done.stderr)
        expected = expect if isinstance(expect, tuple) else (expect,)
        assert answer.code in expected, (
            f"exit {answer.code}, not {expect}\n{answer.err}{answer.out}"
        )
        return answer

    def kill_when(
        self, reached: Callable[[], bool], *arguments: object, timeout: float = 180
    ) -> None:
        """Run until that is so, and end it with SIGKILL; AssertionError when it ends before."""
        log = self.home / "killed"
        self.home.mkdir(parents=True, exist_ok=True)
        process = ChildProcess(["env", *self._settings(), *self._line(arguments)], log)
        deadline = time.monotonic() + timeout
        while not reached():
            assert process.running, f"ended before it could be killed\n{process.tail()}"
            assert time.monotonic() < deadline, f"not reached in {timeout} s\n{process.tail()}"
            time.sleep(0.005)
        process.kill()
        assert process.wait(1) == -signal.SIGKILL, process.tail()

    def _line(self, arguments: tuple[object, ...]) -> list[str]:
        program = [self.python, "-m", "snapstore", "-c", str(self._configuration()), "--json"]
        return [*program, *map(str, arguments)]

    def _configuration(self) -> Path:
        """JSON is YAML too."""
        path = self.home / "snapstore.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        repository = {"url": self.repository, "options": dict(self.options)}
        path.write_text(json.dumps({"repository": repository, **self.sections}))
        return path

    def _environment(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("AWS_", "SNAPSTORE_", "XDG_"))
        }
        return kept | {
            "HOME": str(self.home),
            "AWS_EC2_METADATA_DISABLED": "true",
            **self.keys,
        }

    def _settings(self) -> list[str]:
        return [f"{name}={value}" for name, value in self._environment().items()]
