"""One Kafka cluster: clients that share its settings, and questions to it."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NoAnswer
from contextlib import contextmanager
from typing import TypeVar

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import KafkaError as DriverError
from confluent_kafka.admin import AdminClient

from snapstore.errors import ConfigError, KafkaError, SnapstoreError
from snapstore.kafka.driver import (
    NO_ANSWER,
    NOT_ALLOWED,
    NOT_LET_IN,
    UNSETTLED,
    WRONG_SETTING,
    DriverLog,
    translate,
)

Answer = TypeVar("Answer")

# Without them a replay could skip records, see aborted ones, or create the topic it looks for.
_FIXED_FOR_CONSUMERS: Mapping[str, object] = {
    "allow.auto.create.topics": False,
    "auto.offset.reset": "error",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
}
_DEFAULTS_FOR_CONSUMERS: Mapping[str, object] = {
    "fetch.queue.backoff.ms": 2,
    "fetch.wait.max.ms": 50,
    "group.id": "snapstore",
    "queued.min.messages": 10_000,
}

_ONLY_OF_PROGRAMS = ("default.topic.config", "logger", "on_commit", "on_delivery", "opaque")

_CLUSTER = "the cluster"
_PAUSE_SECONDS = 0.1
_LOOK_SECONDS = 0.2
_NOT_LET_IN_SECONDS = 5.0
"""Another broker, or the next token, may be let in."""

_REACH_SECONDS = 8.0
"""For the first question: whoever waits for a whole command shall know within ten seconds."""


class Connection:
    """Makes clients for one cluster, and asks it. Safe to use from several threads.

    ``timeout_seconds`` bounds every wait without progress; the first one, for any answer at all,
    is 8 seconds at most. When that fails, whoever asks within the next ``timeout_seconds`` gets
    the same error at once.
    """

    def __init__(
        self, bootstrap: str, properties: Mapping[str, object], timeout_seconds: float
    ) -> None:
        self.bootstrap = bootstrap
        self.timeout_seconds = timeout_seconds
        self._complaint: DriverError | None = None
        self._settings = {**properties, "bootstrap.servers": bootstrap}
        self._reaching = threading.Lock()
        self._reached = False
        self._failure: SnapstoreError | None = None
        self._failure_holds_until = 0.0
        _refuse_functions(properties)
        _refuse_conflicts(properties, bootstrap)
        self.admin = self._open(AdminClient, self._settings)

    def consumer(self, group: str | None = None) -> Consumer:
        """Return a consumer that joins no group and commits nothing. The caller closes it.

        ``group`` is the one whose committed offsets can be read; without one it is of no concern.
        """
        settings = {**_DEFAULTS_FOR_CONSUMERS, **self._settings, **_FIXED_FOR_CONSUMERS}
        if group is not None:
            settings["group.id"] = group
        return self._open(Consumer, settings)

    def reach(self) -> None:
        """Make sure that the brokers answer. Raises KafkaError or CredentialsError."""
        with self._reaching:
            if self._reached:
                return
            if self._failure is not None and time.monotonic() < self._failure_holds_until:
                raise type(self._failure)(
                    self._failure.message, hint=self._failure.hint, **self._failure.facts
                )
            seconds = min(_REACH_SECONDS, self.timeout_seconds)
            try:
                with self.translated(_CLUSTER, seconds):
                    asked = self.admin.describe_cluster(request_timeout=seconds)
                    self._wait_for(asked, seconds)
            except SnapstoreError as error:
                self._failure = error
                self._failure_holds_until = time.monotonic() + self.timeout_seconds
                raise
            self._complaint = self._failure = None
            self._reached = True

    def ask(self, request: "Callable[[], Future[Answer]]", subject: str) -> Answer:
        """Send an admin request about ``subject``, as ``settle`` does."""
        return self.settle(lambda: self._wait_for(request(), self.timeout_seconds + 1), subject)

    def settle(self, attempt: Callable[[], Answer], subject: str) -> Answer:
        """Return what ``attempt`` returns; again while the cluster is settling something.

        An attempt may also end with the driver's time-out before ours is over.
        """
        self.reach()
        deadline = time.monotonic() + self.timeout_seconds
        while True:
            with self.translated(subject, self.timeout_seconds):
                try:
                    answer = attempt()
                except KafkaException as error:
                    again = error.args[0].code() in UNSETTLED | NO_ANSWER
                    if not again or time.monotonic() > deadline:
                        raise
                else:
                    self._complaint = None
                    return answer
            time.sleep(_PAUSE_SECONDS)

    def close(self) -> None:
        self.admin.__exit__(None, None, None)

    @contextmanager
    def translated(self, subject: str, seconds: float) -> Iterator[None]:
        """Turn the driver's exceptions into ours; ``seconds`` is how long it had."""
        try:
            yield
        except KafkaException as error:
            raise self.error(error.args[0], subject, seconds) from error
        except NoAnswer as error:
            raise self.unreachable(subject, seconds) from error

    def error(self, error: DriverError, subject: str, seconds: float) -> SnapstoreError:
        """Return our exception for the driver's error."""
        if error.code() in NO_ANSWER:
            return self.unreachable(subject, seconds)
        return translate(error, subject, self.bootstrap)

    def unreachable(self, subject: str, seconds: float) -> SnapstoreError:
        """Return the error for brokers that did not answer in time, with what the driver said.

        The next question begins with whether they answer at all.
        """
        self._reached = False
        self.admin.poll(0)
        complaint = self._complaint
        if complaint is not None and complaint.code() in NOT_ALLOWED:
            return translate(complaint, subject, self.bootstrap)
        reason = "connections are neither refused nor answered"
        if complaint is not None:
            reason = complaint.str()
        about = "" if subject == _CLUSTER else f" about {subject}"
        return KafkaError(
            f"no answer from Kafka at {self.bootstrap}{about} within {seconds:g} s: {reason}",
            hint="check the bootstrap address, the network and the brokers, then try again",
            subject=subject,
            bootstrap=self.bootstrap,
        )

    def _wait_for(self, asked: "Future[Answer]", seconds: float) -> Answer:
        """Return the answer; raise NoAnswer in the end, or when no broker lets us in."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                return asked.result(_LOOK_SECONDS)
            except NoAnswer:
                self.admin.poll(0)
                complaint = self._complaint
                if complaint is not None and complaint.code() in NOT_LET_IN:
                    deadline = min(deadline, time.monotonic() + _NOT_LET_IN_SECONDS)
                if time.monotonic() > deadline:
                    raise

    def _open(self, kind: type[Answer], settings: Mapping[str, object]) -> Answer:
        try:
            return kind({"error_cb": self._keep, **settings}, logger=DriverLog())  # type: ignore[call-arg]
        except KafkaException as error:
            reason: DriverError = error.args[0]
            if reason.code() in WRONG_SETTING:
                raise ConfigError(f"Kafka property not accepted: {reason.str()}") from error
            raise self.error(reason, _CLUSTER, 0) from error

    def _keep(self, error: DriverError) -> None:
        if error.code() != DriverError._ALL_BROKERS_DOWN or self._complaint is None:
            self._complaint = error


def _refuse_functions(properties: Mapping[str, object]) -> None:
    """Refuse what the driver takes from programs only, and values that it would misread."""
    for name, value in properties.items():
        if name.endswith("_cb") or name in _ONLY_OF_PROGRAMS:
            raise ConfigError(
                f"the Kafka property {name} is for programs: it takes no text",
                hint=f"leave {name} out of kafka.properties",
                property=name,
            )
        if isinstance(value, list | dict):
            raise ConfigError(
                f"the Kafka property {name} takes a text, a number or a truth value, not several",
                hint=f"write kafka.properties.{name} as Kafka does, such as a,b for a list",
                property=name,
            )


def _refuse_conflicts(properties: Mapping[str, object], bootstrap: str) -> None:
    fixed = {**_FIXED_FOR_CONSUMERS, "bootstrap.servers": bootstrap}
    for name, value in fixed.items():
        if name in properties and str(properties[name]).lower() != str(value).lower():
            raise ConfigError(
                f"the Kafka property {name} must be {value}, not {properties[name]}",
                hint="leave it out: replay would be wrong with any other value",
                property=name,
            )
