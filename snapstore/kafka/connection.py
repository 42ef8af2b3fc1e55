"""One Kafka cluster: clients that share its settings, and its errors in our words."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NoAnswer
from contextlib import contextmanager
from typing import TypeVar

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import KafkaError as DriverError
from confluent_kafka.admin import AdminClient

from snapstore.errors import (
    ChangelogGoneError,
    ConfigError,
    CredentialsError,
    KafkaError,
    SnapstoreError,
)

Answer = TypeVar("Answer")

_LOG = logging.getLogger(__name__)
_LOG.addHandler(logging.NullHandler())

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

_GONE = {
    DriverError.UNKNOWN_TOPIC_OR_PART,
    DriverError.UNKNOWN_TOPIC_ID,
    DriverError.TOPIC_EXCEPTION,
    DriverError._UNKNOWN_TOPIC,
    DriverError._UNKNOWN_PARTITION,
}
_NOT_LET_IN = {
    DriverError.SASL_AUTHENTICATION_FAILED,
    DriverError._AUTHENTICATION,
    DriverError._SSL,
}
_NOT_ALLOWED = {
    *_NOT_LET_IN,
    DriverError.TOPIC_AUTHORIZATION_FAILED,
    DriverError.CLUSTER_AUTHORIZATION_FAILED,
    DriverError.GROUP_AUTHORIZATION_FAILED,
}
_UNSETTLED = {
    DriverError.LEADER_NOT_AVAILABLE,
    DriverError.NOT_LEADER_FOR_PARTITION,
    DriverError.FENCED_LEADER_EPOCH,
    DriverError.UNKNOWN_LEADER_EPOCH,
    DriverError.OFFSET_NOT_AVAILABLE,
    DriverError.COORDINATOR_LOAD_IN_PROGRESS,
    DriverError.COORDINATOR_NOT_AVAILABLE,
    DriverError.NOT_COORDINATOR,
    DriverError.UNSTABLE_OFFSET_COMMIT,
    DriverError._NOENT,
}
_PAUSE_SECONDS = 0.1
_LOOK_SECONDS = 0.2
_NOT_LET_IN_SECONDS = 5.0
"""Another broker, or the next token, may be let in."""

_WRONG_SETTING = {DriverError._INVALID_ARG, DriverError._CONFLICT}


class Connection:
    """Makes clients for one cluster. ``timeout_seconds`` bounds every wait without progress."""

    def __init__(
        self, bootstrap: str, properties: Mapping[str, object], timeout_seconds: float
    ) -> None:
        self.bootstrap = bootstrap
        self.timeout_seconds = timeout_seconds
        self._complaint: DriverError | None = None
        self._settings = {**properties, "bootstrap.servers": bootstrap}
        _refuse_conflicts(properties, bootstrap)
        self.admin = self._open(AdminClient, self._settings)

    def consumer(self) -> Consumer:
        """Return a consumer that joins no group and commits nothing. The caller closes it."""
        settings = {**_DEFAULTS_FOR_CONSUMERS, **self._settings, **_FIXED_FOR_CONSUMERS}
        return self._open(Consumer, settings)

    def ask(
        self,
        request: "Callable[[], Future[Answer]]",
        subject: str,
        *,
        fault: Callable[[Answer], DriverError | None] = lambda _: None,
    ) -> Answer:
        """Send an admin request about ``subject``; again while the cluster is settling something.

        ``fault`` finds the error within an answer that is one by itself.
        """
        deadline = time.monotonic() + self.timeout_seconds
        while True:
            with self.translated(subject):
                try:
                    answer = self._wait_for(request())
                    if (error_within := fault(answer)) is not None:
                        raise KafkaException(error_within)
                except KafkaException as error:
                    if error.args[0].code() not in _UNSETTLED or time.monotonic() > deadline:
                        raise
                else:
                    self._complaint = None
                    return answer
            time.sleep(_PAUSE_SECONDS)

    def _wait_for(self, asked: "Future[Answer]") -> Answer:
        """Return the answer; raise NoAnswer in the end, or when no broker lets us in."""
        deadline = time.monotonic() + self.timeout_seconds + 1
        while True:
            try:
                return asked.result(_LOOK_SECONDS)
            except NoAnswer:
                self.admin.poll(0)
                complaint = self._complaint
                if complaint is not None and complaint.code() in _NOT_LET_IN:
                    deadline = min(deadline, time.monotonic() + _NOT_LET_IN_SECONDS)
                if time.monotonic() > deadline:
                    raise

    def close(self) -> None:
        self.admin.__exit__(None, None, None)

    @contextmanager
    def translated(self, subject: str) -> Iterator[None]:
        """Turn the driver's exceptions into ours."""
        try:
            yield
        except KafkaException as error:
            raise self.error(error.args[0], subject) from error
        except NoAnswer as error:
            raise self.unreachable(subject) from error

    def error(self, error: DriverError, subject: str) -> SnapstoreError:
        """Return our exception for the driver's error."""
        code = error.code()
        if code in _GONE:
            return ChangelogGoneError(
                f"{subject} does not exist in Kafka at {self.bootstrap}",
                hint="check the topic's name and the cluster",
                subject=subject,
            )
        if code in _NOT_ALLOWED:
            return _not_allowed(error, subject)
        if code in (DriverError._TIMED_OUT, DriverError._TRANSPORT, DriverError._ALL_BROKERS_DOWN):
            return self.unreachable(subject)
        return KafkaError(
            f"Kafka failed to answer about {subject}: {error.str()}",
            subject=subject,
            kafka_error=error.name(),
        )

    def unreachable(self, subject: str) -> SnapstoreError:
        """Return the error for brokers that did not answer in time, with what the driver said."""
        self.admin.poll(0)
        complaint = self._complaint
        if complaint is not None and complaint.code() in _NOT_ALLOWED:
            return _not_allowed(complaint, subject)
        reason = f": {complaint.str()}" if complaint is not None else ""
        return KafkaError(
            f"no answer from Kafka at {self.bootstrap} about {subject} "
            f"within {self.timeout_seconds:g} s{reason}",
            hint="check the bootstrap address, the network and the brokers, then try again",
            subject=subject,
        )

    def _open(self, kind: type[Answer], settings: Mapping[str, object]) -> Answer:
        try:
            return kind({"error_cb": self._keep, **settings}, logger=_LOG)  # type: ignore[call-arg]
        except KafkaException as error:
            reason: DriverError = error.args[0]
            if reason.code() in _WRONG_SETTING:
                raise ConfigError(f"Kafka property not accepted: {reason.str()}") from error
            raise self.error(reason, "the cluster") from error

    def _keep(self, error: DriverError) -> None:
        if error.code() != DriverError._ALL_BROKERS_DOWN or self._complaint is None:
            self._complaint = error


def _refuse_conflicts(properties: Mapping[str, object], bootstrap: str) -> None:
    fixed = {**_FIXED_FOR_CONSUMERS, "bootstrap.servers": bootstrap}
    for name, value in fixed.items():
        if name in properties and str(properties[name]).lower() != str(value).lower():
            raise ConfigError(
                f"the Kafka property {name} must be {value}, not {properties[name]}",
                hint="leave it out: replay would be wrong with any other value",
                property=name,
            )


def _not_allowed(error: DriverError, subject: str) -> CredentialsError:
    return CredentialsError(
        f"Kafka denies access to {subject}: {error.str()}",
        hint="snapstore needs Describe, DescribeConfigs and Read on the changelog topics",
        subject=subject,
        kafka_error=error.name(),
    )
