"""How each program stores a folder in the bucket, stores it again, and brings it back."""

from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.lab import BUCKET, Lab
from benchmarks.measure import Cost
from benchmarks.stores import APPLICATION

Environment = Mapping[str, str]
OURS = "snapstore"
PEERS = ("aws s3 sync", "s5cmd", "rclone", "restic")

FLAGS = {
    "snapstore": "snapshot -q; restore -q --allow-unchecked-changelog",
    "aws s3 sync": "s3 sync --only-show-errors",
    "s5cmd": "--log error sync (its own parallelism)",
    "rclone": "sync -q --fast-list --use-server-modtime --update --transfers 8 --checkers 16",
    "restic": "backup -q; restore -q",
}


class Contender:
    """One program and the place in the bucket that belongs to it. ``place`` begins anew."""

    def __init__(self, lab: Lab, name: str, env: Environment, place: str) -> None:
        self.name = name
        self._lab = lab
        self._env = {**env, "RESTIC_REPOSITORY": f"s3:{env['AWS_ENDPOINT_URL']}/{BUCKET}/{place}"}
        self._url = f"s3://{BUCKET}/{place}"
        self._place = place
        self._program = lab.tools.paths[name]
        if name == OURS:
            lab.quietly(env, self._program, "init", "-q", "-r", self._url)
        elif name == "restic":
            lab.quietly(self._env, self._program, "init", "-q")

    def store(self, source: Path, *flags: str) -> Cost:
        return self._run(*_STORE[self.name](self._url, self._place, source), *flags)

    def restore(self, target: Path) -> Cost:
        return self._run(*_RESTORE[self.name](self._url, self._place, target))

    def _run(self, *arguments: str | Path) -> Cost:
        return self._lab.run(self._env, [self._program, *arguments])


def contenders(lab: Lab, env: Environment, place: str) -> list[Contender]:
    """Return snapstore and every peer that is there, each with an empty place."""
    names = [name for name in (OURS, *PEERS) if name in lab.tools.paths]
    return [Contender(lab, name, env, f"{place}-{name.replace(' ', '-')}") for name in names]


def ours_first(costs: dict[str, list[Cost]]) -> dict[str, list[Cost]]:
    return dict(sorted(costs.items(), key=lambda item: item[0] != OURS))


_RCLONE = ("-q", "--fast-list", "--use-server-modtime", "--update", "--transfers", "8")

Command = Callable[[str, str, Path], tuple[str | Path, ...]]

_STORE: Mapping[str, Command] = {
    "snapstore": lambda url, _, source: ("snapshot", "-q", "-r", url, "--state-dir", source),
    "aws s3 sync": lambda url, _, source: ("s3", "sync", "--only-show-errors", source, url),
    "s5cmd": lambda url, _, source: ("--log", "error", "sync", f"{source}/", f"{url}/"),
    "rclone": lambda _, place, source: (
        "sync", *_RCLONE, "--checkers", "16", source, f"s:{BUCKET}/{place}",
    ),
    "restic": lambda _url, _, source: ("backup", "-q", source),
}  # fmt: skip

_RESTORE: Mapping[str, Command] = {
    "snapstore": lambda url, _, target: (
        "restore", "-q", "-r", url, "--application", APPLICATION, "--target", target,
        "--allow-unchecked-changelog",
    ),
    "aws s3 sync": lambda url, _, target: ("s3", "sync", "--only-show-errors", url, target),
    "s5cmd": lambda url, _, target: ("--log", "error", "sync", f"{url}/*", f"{target}/"),
    "rclone": lambda _, place, target: (
        "copy", "-q", "--transfers", "8", f"s:{BUCKET}/{place}", target,
    ),
    "restic": lambda _url, _, target: ("restore", "-q", "latest", "--target", target),
}  # fmt: skip
