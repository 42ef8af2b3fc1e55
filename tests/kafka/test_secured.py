"""A broker that wants TLS and a password or a token: librdkafka's properties reach every client."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from snapstore.errors import CredentialsError
from snapstore.kafka.changelog import KafkaChangelog
from snapstore.testing.changelog_contract import numbered
from tests.kafka.writer import BrokerLogs
from tests.support.broker import Broker
from tests.support.certificates import make_certificates

pytestmark = pytest.mark.kafka

_MODULES = "org.apache.kafka.common.security"
_PLAIN = f'{_MODULES}.plain.PlainLoginModule required user_snapstore="right" user_limited="right";'
_TOKEN = (
    f'{_MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="b";'
)
PASSWORD = {
    "sasl.mechanism": "PLAIN",
    "sasl.username": "snapstore",
    "sasl.password": "right",
}
TOKEN = {
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.config": "principal=snapstore",
    "enable.sasl.oauthbearer.unsecure.jwt": True,
}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the certificates of the broker and of its authority."""
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder)
    return folder


@pytest.fixture(scope="module")
def secured(authority: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    properties = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority / "server.pem"),
        "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": _PLAIN,
        "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config": _TOKEN,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:snapstore;User:b",
    }
    with Broker(tmp_path_factory.mktemp("secured"), properties, secured=True) as broker:
        yield broker


def properties(authority: Path, login: Mapping[str, object]) -> dict[str, object]:
    return {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(authority / "ca.pem"),
        **login,
    }


@pytest.mark.parametrize("login", [PASSWORD, TOKEN], ids=["a password", "a token"])
def test_a_changelog_is_read_from_end_to_end(
    secured: Broker, authority: Path, login: Mapping[str, object]
) -> None:
    log = BrokerLogs(secured)
    partition = log.create()
    log.append(partition, numbered(20))
    with closing(
        KafkaChangelog(secured.secured_bootstrap, properties(authority, login), timeout_seconds=60)
    ) as changelog:
        assert changelog.inspect(partition, now=datetime.now(UTC)).log_end == 20
        assert changelog.mark(partition, 19) is not None
        assert changelog.committed("nobody", partition) is None
        with changelog.read(partition, 0, 20) as tail:
            assert [record.offset for batch in tail for record in batch] == [*range(20)]


def test_a_wrong_password_is_told_at_once_and_not_shown(secured: Broker, authority: Path) -> None:
    login = {**PASSWORD, "sasl.password": "a-secret-that-is-wrong"}
    partition = BrokerLogs(secured).create()
    with (
        closing(
            KafkaChangelog(
                secured.secured_bootstrap, properties(authority, login), timeout_seconds=600
            )
        ) as changelog,
        pytest.raises(CredentialsError) as refused,
    ):
        changelog.inspect(partition, now=datetime.now(UTC))
    assert "a-secret" not in str(refused.value) + repr(refused.value.facts)


def test_a_broker_of_an_unknown_authority_is_not_believed(
    secured: Broker, authority: Path, tmp_path: Path
) -> None:
    make_certificates(tmp_path)
    shutil.copy(authority / "server.pem", tmp_path / "server.pem")
    partition = BrokerLogs(secured).create()
    with (
        closing(
            KafkaChangelog(
                secured.secured_bootstrap, properties(tmp_path, PASSWORD), timeout_seconds=600
            )
        ) as changelog,
        pytest.raises(CredentialsError, match="certificate could not be verified"),
    ):
        changelog.inspect(partition, now=datetime.now(UTC))


def test_the_rights_that_the_hint_names_are_enough_and_no_group_is_among_them_h35(
    secured: Broker, authority: Path
) -> None:
    log = BrokerLogs(secured)
    partition = log.create()
    log.append(partition, numbered(20))
    login = {**PASSWORD, "sasl.username": "limited"}
    now = datetime.now(UTC)
    with closing(
        KafkaChangelog(secured.secured_bootstrap, properties(authority, login), timeout_seconds=60)
    ) as changelog:
        with pytest.raises(CredentialsError) as refused:
            changelog.inspect(partition, now=now)
        assert refused.value.hint is not None
        for right in (
            AclOperation.DESCRIBE,
            AclOperation.DESCRIBE_CONFIGS,
            AclOperation.READ,
        ):
            assert right.name.replace("_", "") in refused.value.hint.upper()
            grant(secured, "limited", ResourceType.TOPIC, partition.topic, right)

        state = changelog.inspect(partition, now=now)
        assert state.log_end == 20
        assert changelog.offset_at(partition, datetime.fromtimestamp(0, UTC)) == 0
        assert changelog.mark(partition, 19) is not None
        assert changelog.last_mark(partition, start=0, stop=20) is not None
        changelog.check_history(partition, offset=20, leader_epoch=state.end_leader_epoch or 0)
        with changelog.read(partition, 0, 20) as tail:
            assert [record.offset for batch in tail for record in batch] == [*range(20)]


def test_the_right_to_a_group_is_named_where_its_offsets_are_read_h35(
    secured: Broker, authority: Path
) -> None:
    partition = BrokerLogs(secured).create()
    grant(secured, "limited", ResourceType.TOPIC, partition.topic, AclOperation.DESCRIBE)
    login = {**PASSWORD, "sasl.username": "limited"}
    with closing(
        KafkaChangelog(secured.secured_bootstrap, properties(authority, login), timeout_seconds=60)
    ) as changelog:
        with pytest.raises(CredentialsError, match="group shop") as refused:
            changelog.committed("shop", partition)
        assert refused.value.hint == "snapstore needs Describe on that consumer group"
        grant(secured, "limited", ResourceType.GROUP, "shop", AclOperation.DESCRIBE)
        assert changelog.committed("shop", partition) is None


def grant(broker: Broker, user: str, kind: ResourceType, name: str, right: AclOperation) -> None:
    rule = AclBinding(
        kind,
        name,
        ResourcePatternType.LITERAL,
        f"User:{user}",
        "*",
        right,
        AclPermissionType.ALLOW,
    )
    admin = broker.admin
    admin.create_acls([rule])[rule].result(120)
