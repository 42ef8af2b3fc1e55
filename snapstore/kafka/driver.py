"""The driver's own words: its log, its error codes, and what they are in ours."""

import logging
from typing import Final

from confluent_kafka import KafkaError as DriverError

from snapstore.errors import ChangelogGoneError, CredentialsError, KafkaError, SnapstoreError

_LOG = logging.getLogger(__name__)

GONE: Final = {
    DriverError.UNKNOWN_TOPIC_OR_PART,
    DriverError.UNKNOWN_TOPIC_ID,
    DriverError.TOPIC_EXCEPTION,
    DriverError._UNKNOWN_TOPIC,
    DriverError._UNKNOWN_PARTITION,
}
NOT_LET_IN: Final = {
    DriverError.SASL_AUTHENTICATION_FAILED,
    DriverError.UNSUPPORTED_SASL_MECHANISM,
    DriverError.ILLEGAL_SASL_STATE,
    DriverError._AUTHENTICATION,
    DriverError._SSL,
}
NOT_ALLOWED: Final = {
    *NOT_LET_IN,
    DriverError.TOPIC_AUTHORIZATION_FAILED,
    DriverError.CLUSTER_AUTHORIZATION_FAILED,
    DriverError.GROUP_AUTHORIZATION_FAILED,
}
NO_ANSWER: Final = {
    DriverError._TIMED_OUT,
    DriverError._TRANSPORT,
    DriverError._ALL_BROKERS_DOWN,
}
UNSETTLED: Final = {
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
    DriverError._TRANSPORT,
    DriverError._WAIT_COORD,
}
"""The cluster elects, loads or restarts something: the same request may be answered soon."""

WRONG_SETTING: Final = {DriverError._INVALID_ARG, DriverError._CONFLICT}

_LOGIN = "check the sasl.* and ssl.* entries of kafka.properties"
_RIGHTS: Final = {
    DriverError.GROUP_AUTHORIZATION_FAILED: "snapstore needs Describe on that consumer group",
    DriverError.CLUSTER_AUTHORIZATION_FAILED: "snapstore needs Describe on the cluster",
}
_TOPIC_RIGHTS = "snapstore needs Describe, DescribeConfigs and Read on the changelog topics"


class DriverLog:
    """Takes the driver's log lines as details of ours.

    Whatever matters to the user of them is raised as an error, and the driver repeats a line with
    each of its attempts, several times a second.
    """

    def log(self, _level: int, message: str, *arguments: object) -> None:
        _LOG.debug(message, *arguments)


def translate(error: DriverError, subject: str, bootstrap: str) -> SnapstoreError:
    """Return our exception for the driver's error about ``subject``."""
    code = error.code()
    if code in GONE:
        return ChangelogGoneError(
            f"{subject} does not exist in Kafka at {bootstrap}",
            hint="check the topic's name and the cluster",
            subject=subject,
        )
    if code in NOT_ALLOWED:
        return CredentialsError(
            f"Kafka denies access to {subject}: {error.str()}",
            hint=_LOGIN if code in NOT_LET_IN else _RIGHTS.get(code, _TOPIC_RIGHTS),
            subject=subject,
            kafka_error=error.name(),
        )
    return KafkaError(
        f"Kafka at {bootstrap} failed to answer about {subject}: {error.str()}",
        subject=subject,
        kafka_error=error.name(),
    )
