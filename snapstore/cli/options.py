"""Types and options that several commands share."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from snapstore.errors import ConfigError
from snapstore.model.units import parse_duration, parse_size

if TYPE_CHECKING:
    from snapstore.operations.replay_plan import ReplayGoal

F = TypeVar("F", bound=Callable[..., Any])


class Size(click.ParamType[int]):
    """Bytes, as ``64MiB``."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return parse_size(value)
        except ValueError as exc:
            self.fail(str(exc), param, ctx)


class Duration(click.ParamType[timedelta]):
    """A time span, as ``7d``."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        if isinstance(value, timedelta):
            return value
        try:
            return parse_duration(value)
        except ValueError as exc:
            self.fail(str(exc), param, ctx)


class Moment(click.ParamType[datetime]):
    """A time, as ``2026-03-01T12:00:00Z``; UTC where no zone is given."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"not a time as 2026-03-01T12:00:00Z: {value!r}", param, ctx)
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


class Percent(click.ParamType[float]):
    """A share, as ``10%``."""

    name = "percent"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, float):
            return value
        try:
            percent = float(value.removesuffix("%"))
        except ValueError:
            self.fail(f"not a percentage: {value!r}", param, ctx)
        if not 0 < percent <= 100:
            self.fail("must be above 0 and at most 100 percent", param, ctx)
        return percent


class Tag(click.ParamType[tuple[str, str]]):
    """``KEY=VALUE``."""

    name = "key=value"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        key, equals, rest = value.partition("=")
        if not (equals and key):
            self.fail(f"not of the form KEY=VALUE: {value!r}", param, ctx)
        return key, rest


def state_dir_option(function: F) -> F:
    return click.option(
        "--state-dir",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="The application's state.dir.",
    )(function)


def state_dir_argument(function: F) -> F:
    """Take the directory as ``STATE_DIR``, and as ``--state-dir`` too."""
    return click.argument(
        "place", metavar="[STATE_DIR]", required=False, type=click.Path(path_type=Path)
    )(state_dir_option(function))


def state_dir_override(place: Path | None, state_dir: Path | None) -> tuple[str | None, str]:
    """Return the directory that was given, and as what. Raises ConfigError for two."""
    if place is not None and state_dir is not None:
        raise ConfigError("STATE_DIR and --state-dir exclude each other", hint="give one of them")
    if place is not None:
        return str(place), "STATE_DIR"
    return None if state_dir is None else str(state_dir), "--state-dir"


def layout_option(function: F) -> F:
    return click.option(
        "--layout", metavar="NAME", help="How folders are read [default: kafka-streams]."
    )(function)


def application_option(function: F) -> F:
    return click.option("--application", metavar="ID", help="Only this application.id.")(function)


def task_option(function: F) -> F:
    return click.option("--task", metavar="TASK", help="Only this task, such as 0_3.")(function)


def store_option(function: F) -> F:
    return click.option("--store", metavar="STORE", help="Only this store.")(function)


def dry_run_option(function: F) -> F:
    return click.option("--dry-run", is_flag=True, help="Say what would be done, do nothing.")(
        function
    )


def limit_rate_option(function: F) -> F:
    return click.option(
        "--limit-rate", type=Size(), metavar="SIZE", help="Bytes per second at most, as 20MiB."
    )(function)


def parallel_option(function: F) -> F:
    return click.option(
        "--parallel",
        type=click.IntRange(min=1),
        metavar="N",
        help="Files moved at a time [default: 8].",
    )(function)


def to_offset_option(function: F) -> F:
    return click.option(
        "--to-offset",
        type=click.IntRange(min=0),
        metavar="N",
        help="The last offset to apply; without it the end of the log.",
    )(function)


def to_time_option(function: F) -> F:
    return click.option(
        "--to-time", type=Moment(), metavar="TIME", help="Apply only records before this time."
    )(function)


def replay_goal(to_offset: int | None, to_time: datetime | None) -> "ReplayGoal":
    """Raises ConfigError when both are given."""
    # Imported here: most commands have no use for it.
    from snapstore.operations.replay_plan import ReplayGoal

    if to_offset is not None and to_time is not None:
        raise ConfigError("--to-offset and --to-time exclude each other")
    return ReplayGoal(to_offset=to_offset, to_time=to_time)


def accept_earlier_clock_option(function: F) -> F:
    return click.option(
        "--accept-earlier-clock",
        is_flag=True,
        help="A clock that went back was wrong before, and is right now.",
    )(function)


kafka_streams_version_option = click.option(
    "--kafka-streams-version",
    "version",
    metavar="VERSION",
    help="The version that will start, as 4.4.0 [default: any that the files allow].",
)
