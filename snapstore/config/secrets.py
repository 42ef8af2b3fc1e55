"""Which values of a configuration may be shown, and which may stand where.

What is passed on to a driver or a plug-in is hidden unless its name is known to be harmless: a new
secret of theirs is hidden before anybody here has heard of it. Names of Kafka are those of
librdkafka's CONFIGURATION.md.
"""

import re
from typing import Final

HIDDEN: Final = "(hidden)"
_PASSED_ON: Final = re.compile(
    r"(?:kafka\.properties|repository\.options|state\.options|backends\.[^.]+)\."
)
_SPEAKS_OF_ONE: Final = re.compile(r"passw|passphrase|secret|key|token|jaas|credential|pem", re.I)
_NUMBERS: Final = re.compile(
    r".*[._](?:ms|seconds|bytes|kbytes|messages|cnt|max|min|fails|family|size|ttl|attempts)"
)
_HARMLESS: Final = frozenset(
    """
    client.id client.rack client.dns.lookup group.id group.instance.id group.protocol
    security.protocol sasl.mechanism sasl.mechanisms sasl.username sasl.kerberos.service.name
    sasl.kerberos.principal sasl.kerberos.keytab sasl.oauthbearer.method sasl.oauthbearer.client.id
    sasl.oauthbearer.scope sasl.oauthbearer.token.endpoint.url ssl.ca.location ssl.crl.location
    ssl.certificate.location ssl.key.location ssl.keystore.location ssl.cipher.suites
    ssl.curves.list ssl.sigalgs.list ssl.endpoint.identification.algorithm ssl.providers
    ssl.engine.id ssl.engine.location https.ca.location plugin.library.paths isolation.level
    auto.offset.reset broker.version.fallback metadata.recovery.strategy debug log_level
    endpoint_url region profile addressing_style sse sse_kms_key_id storage_class
    multipart_threshold part_size max_parts parts_in_flight checksum_mode ca_bundle max_attempts
    connections connect_timeout read_timeout give_up_after
    application task store backend store_type changelog applied_offset guarantee
    assume_stopped_without_locks retry_seconds staging_dir copy_tables immutable mutable ignore
    """.split()  # noqa: SIM905 - read as a text
)
_BY_STORE: Final = re.compile(r"(?:changelogs|rules)\.")
_ADDRESSES: Final = frozenset(
    {
        "kafka.bootstrap",
        "kafka.properties.bootstrap.servers",
        "kafka.properties.metadata.broker.list",
        "repository.options.region",
    }
)
_USERINFO: Final = re.compile(r"(?<=://)[^/@\s]+@")
_QUERY: Final = re.compile(r"(?<=://)([^\s?]*\?)(\S+)")
_SHORTEST_UNKNOWN: Final = 8


def is_address(key: str) -> bool:
    """Whether the value at a dotted key says where requests go, and so must hold no secret."""
    return key in _ADDRESSES or key.rpartition(".")[2] in ("url", "uri", "endpoint", "endpoint_url")


def speaks_of_a_secret(name: str) -> bool:
    """Whether a name, of a key or of a variable, is one that secrets have."""
    return _SPEAKS_OF_ONE.search(name) is not None


def is_hidden(key: str) -> bool:
    """Whether the value at a dotted key is kept out of sight."""
    passed_on = _PASSED_ON.match(key)
    if passed_on is None:
        return False
    name = key[passed_on.end() :]
    if name in _HARMLESS or _BY_STORE.match(name):
        return False
    return speaks_of_a_secret(name) or _NUMBERS.fullmatch(name) is None


def is_secret(key: str, value: str) -> bool:
    """Whether a value is to be taken out of whatever is printed.

    One that is hidden only because nobody knows its name must be long: a short one may be a word.
    """
    return is_hidden(key) and (speaks_of_a_secret(key) or len(value) >= _SHORTEST_UNKNOWN)


def userinfo(text: str) -> list[str]:
    """Return every ``user:password`` of the URLs in a text."""
    return [match.removesuffix("@") for match in _USERINFO.findall(text)]


def without_userinfo(text: str) -> str:
    """Return the text with ``user:password@`` taken out of every URL in it."""
    return _USERINFO.sub(f"{HIDDEN}@", text)


def queries(text: str) -> list[str]:
    """Return what follows the ``?`` of the URLs in a text, where it is long enough for a secret."""
    return [query for _, query in _QUERY.findall(text) if len(query) >= _SHORTEST_UNKNOWN]


def without_queries(text: str) -> str:
    """Return the text with what follows the ``?`` taken out of every URL in it."""
    return _QUERY.sub(rf"\1{HIDDEN}", text)
