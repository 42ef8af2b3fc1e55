"""Configuration: what wins, what is refused, and what is never shown."""

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

import snapstore.config as config_package
from snapstore.client import check
from snapstore.config import ENVIRONMENT, Config, load_config
from snapstore.config.schema import Sections, StoreConfig
from snapstore.config.secrets import HIDDEN, is_hidden
from snapstore.config.show import secret_values, settings
from snapstore.config.trust import CODE_KEYS
from snapstore.errors import ConfigError
from snapstore.model.strict import decode
from snapstore.registry import BUILT_IN, Registry

EXAMPLE = Path(__file__).parent.parent / "config" / "snapstore.yaml"


def load(
    tmp_path: Path, text: str, env: Mapping[str, str] | None = None, **overrides: str
) -> Config:
    file = tmp_path / "given.yaml"
    file.write_text(text)
    dotted = {key.replace("__", "."): (value, key) for key, value in overrides.items()}
    return load_config(file, env=env or {}, overrides=dotted)


def refusal(tmp_path: Path, text: str, env: Mapping[str, str] | None = None) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text, env)
    return caught.value


def test_a_key_of_an_older_version_is_passed_over_and_noted(tmp_path: Path) -> None:
    config = load(tmp_path, "snapshot: {confirm_after: 10m, capture: disk}")
    assert config.snapshot.capture == "disk"
    assert config.notes == (
        "snapshot.confirm_after does nothing any more: the repository is asked in every run; "
        f"take it out of {tmp_path / 'given.yaml'}",
    )
    assert not load(tmp_path, "snapshot: {capture: disk}").notes


def test_without_a_file_and_environment_everything_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = load_config(env={})
    assert config.sections == Sections()
    assert config.path is None
    assert config.origin("repository.url") == "default"


def test_option_wins_over_environment_over_file_over_default(tmp_path: Path) -> None:
    text = "repository: {url: /file}\nstate: {dir: /file, application: file}"
    env = {"SNAPSTORE_STATE_DIR": "/env", "SNAPSTORE_APPLICATION": "env"}
    config = load(tmp_path, text, env, state__application="option")
    assert config.repository.url == "/file"
    assert config.state.dir == "/env"
    assert config.state.application == "option"
    assert config.state.layout == "kafka-streams"
    assert config.origin("repository.url") == str(tmp_path / "given.yaml")
    assert config.origin("state.dir") == "environment SNAPSTORE_STATE_DIR"
    assert config.origin("state.application") == "option state__application"
    assert config.origin("state.layout") == "default"


S3_IN_THE_FILE = "repository: {url: s3://bucket/p, options: {endpoint_url: 'http://host:1'}}"


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("/backup/folder", {}),
        ("backup", {}),
        ("file:///backup/folder", {}),
        ("s3://other/place", {"endpoint_url": "http://host:1"}),
        ("S3://other/place", {"endpoint_url": "http://host:1"}),
    ],
)
def test_options_of_one_kind_of_storage_are_not_those_of_another_h40(
    tmp_path: Path, url: str, options: dict[str, object]
) -> None:
    by_option = load(tmp_path, S3_IN_THE_FILE, repository__url=url)
    by_variable = load(tmp_path, S3_IN_THE_FILE, {"SNAPSTORE_REPOSITORY": url})
    for config in (by_option, by_variable):
        assert (config.repository.url, config.repository.options) == (url, options)
        assert any(key.startswith("repository.options") for key in config.origins) is bool(options)
    both = load(
        tmp_path, S3_IN_THE_FILE, {"SNAPSTORE_REPOSITORY": "/elsewhere"}, repository__url=url
    )
    assert both.repository.options == {}


def test_options_without_a_url_belong_to_the_one_that_is_given_h40(tmp_path: Path) -> None:
    text = "repository: {options: {endpoint_url: 'http://host:1'}}"
    config = load(tmp_path, text, repository__url="s3://bucket/p")
    assert config.repository.options == {"endpoint_url": "http://host:1"}


@pytest.mark.parametrize(("variable", "key"), ENVIRONMENT.items())
def test_every_variable_sets_its_key(variable: str, key: str) -> None:
    value = "at_least_once" if key == "state.guarantee" else "plain"
    config = load_config(env={variable: value})
    section, _, name = key.partition(".")
    assert getattr(getattr(config, section), name) == value


def test_an_empty_variable_counts_as_unset() -> None:
    assert load_config(env={"SNAPSTORE_REPOSITORY": ""}).repository.url is None


def test_files_are_searched_in_order_and_not_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / ".config/snapstore").mkdir(parents=True)
    (home / ".config/snapstore/config.yaml").write_text("state: {application: home}")
    (tmp_path / "other.yaml").write_text("state: {dir: /other}")
    monkeypatch.chdir(tmp_path)
    env = {"HOME": str(home)}
    assert load_config(env=env).state.application == "home"
    (tmp_path / "snapstore.yaml").write_text("state: {application: here}")
    assert load_config(env=env).state.application == "here"
    env["SNAPSTORE_CONFIG"] = str(tmp_path / "other.yaml")
    assert load_config(env=env).state.application is None
    assert load_config(tmp_path / "snapstore.yaml", env=env).state.application == "here"


def test_a_file_that_was_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no configuration file"):
        load_config(env={"SNAPSTORE_CONFIG": str(tmp_path / "gone.yaml")})
    with pytest.raises(ConfigError, match="no configuration file"):
        load_config(tmp_path / "gone.yaml", env={})


def test_sizes_and_durations_are_parsed_once(tmp_path: Path) -> None:
    text = """
transfer: {limit_rate: 10MiB/s}
retention: {keep_within: 7d, grace: 1h30m}
"""
    config = load(tmp_path, text)
    assert config.transfer.limit_rate == 10 << 20
    assert config.retention.keep_within == timedelta(days=7)
    assert config.retention.grace == timedelta(minutes=90)


def test_references_to_variables_are_expanded(tmp_path: Path) -> None:
    text = "kafka: {properties: {sasl.password: '${PW}', other: '$${PW} and $5'}}"
    config = load(tmp_path, text, {"PW": "pa${x}ss"})
    assert config.kafka.properties == {"sasl.password": "pa${x}ss", "other": "${PW} and $5"}


def test_an_empty_section_is_as_good_as_none(tmp_path: Path) -> None:
    text = "repository:\nkafka:\n  properties:\nstores:\n  counts:\n"
    config = load(tmp_path, text)
    assert config.repository == Sections().repository
    assert config.stores["counts"].skip is False


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("repositry: {url: /x}", "repositry: unknown key", "did you mean repository?"),
        ("transfer: {paralel: 3}", "transfer.paralel: unknown key", "did you mean parallel?"),
        ("stores: {a: {change-log: t}}", "stores.a.change-log: unknown key", "changelog"),
        ("transfer: {parallel: many}", "transfer.parallel: expected int, got str", None),
        ("transfer: {parallel: 0}", "transfer.parallel: expected int >= 1", None),
        ("transfer: {limit_rate: 64M}", "transfer.limit_rate: not a size: '64M'", None),
        ("retention: {grace: 90}", "retention.grace: expected a duration, got 90", "90s"),
        ("retention: {grace: soon}", "retention.grace: not a duration: 'soon'", None),
        ("state: {application: 12}", "state.application: expected a text, got 12", '"12"'),
        ("state: {guarantee: maybe}", "state.guarantee: invalid enum value 'maybe'", None),
        ("state: [a]", "state: expected a mapping, got a list", None),
        ("- a", "holds no mapping", "repository:"),
        ("state: {dir: '${NOPE}'}", "state.dir: the environment variable NOPE is not set", None),
        ("state: {dir: '${a b}'}", "is not the name of a variable", "$${"),
        ("state: {dir: a}\nstate: {dir: b}", "line 2: the key 'state' is there twice", None),
        ("1: a", "line 1: the key 1 is not a text", None),
        ("a: &x [1]\nb: *x", "line 2: aliases are not supported", None),
        ("a: " + "[" * 40, "nested more than 16 deep", None),
        ("a: [1", "line 1: expected ',' or ']'", None),
        ("a: !!python/object/apply:os.getcwd []", "could not determine a constructor", None),
        ("a: \x00", "special characters are not allowed", None),
    ],
)
def test_a_bad_file_is_refused_with_the_place(
    tmp_path: Path, text: str, message: str, hint: str | None
) -> None:
    error = refusal(tmp_path, text)
    assert message in error.message
    assert (hint is None) or (error.hint is not None and hint in error.hint)


def test_a_bad_value_says_who_set_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(env={}, overrides={"transfer.limit_rate": ("fast", "--limit-rate")})
    assert caught.value.facts["origin"] == "option --limit-rate"
    assert refusal(tmp_path, "transfer: {parallel: x}").facts["origin"] == str(
        tmp_path / "given.yaml"
    )


def test_a_file_that_is_not_yaml_at_all_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "given.yaml"
    file.write_bytes(b"\xff\xfe\xfa\x80")
    with pytest.raises(ConfigError, match=r"given\.yaml"):
        load_config(file, env={})
    file.write_bytes(b"# " + b"x" * (1 << 20))
    with pytest.raises(ConfigError, match="larger than"):
        load_config(file, env={})


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    text = """
repository: {url: "https://host/path", options: {secret_access_key: hunter2, anything: hunter2}}
kafka:
  bootstrap: "kafka:9092"
  properties:
    sasl.password: hunter2
    sasl.jaas.config: hunter2
    ssl.key.password: hunter2
    sasl.oauthbearer.client.secret: hunter2
    sasl.oauthbearer.config: "principal=me secret=hunter2"
    nobody.knows.this: hunter2
    session.timeout.ms: 45000
    sasl.mechanism: PLAIN
"""
    shown = {setting.key: setting.value for setting in settings(load(tmp_path, text))}
    assert "hunter2" not in str(shown)
    assert shown["kafka.properties.sasl.password"] == HIDDEN
    assert shown["kafka.properties.sasl.mechanism"] == "PLAIN"
    assert shown["kafka.properties.nobody.knows.this"] == HIDDEN
    assert shown["kafka.properties.session.timeout.ms"] == 45000
    assert shown["repository.url"] == "https://host/path"
    assert "principal=me secret=hunter2" in secret_values(load(tmp_path, text))


def test_every_option_of_ours_is_shown_and_every_secret_of_the_driver_hidden_h27() -> None:
    registry = Registry()
    for name in BUILT_IN["storages"]:
        for field in msgspec.structs.fields(registry.options_type("storages", name)):
            hidden = is_hidden(f"repository.options.{field.name}")
            assert hidden == (field.name == "proxies"), field.name
    for name in BUILT_IN["layouts"]:
        for field in msgspec.structs.fields(registry.options_type("layouts", name)):
            inner = ".x" if field.name in ("changelogs", "rules") else ""
            assert not is_hidden(f"state.options.{field.name}{inner}"), field.name
    for name in BUILT_IN["backends"]:
        for field in msgspec.structs.fields(registry.options_type("backends", name)):
            assert not is_hidden(f"backends.{name}.{field.name}"), field.name
    for name in (
        "sasl.password",
        "sasl.jaas.config",
        "sasl.oauthbearer.config",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.assertion.private.key.pem",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.extensions",
        "ssl.key.pem",
        "ssl.key.password",
        "ssl.keystore.password",
    ):
        assert is_hidden(f"kafka.properties.{name}"), name


@pytest.mark.parametrize(
    "text",
    [
        "repository: {url: 's3://b/p', options: {endpoint_url: 'http://h/${AWS_SECRET_ACCESS_KEY}'}}",
        "repository: {url: 's3://b/p', options: {region: '${AWS_SESSION_TOKEN}'}}",
        "repository: {url: 's3://ann:hunter2@b/p'}",
        "repository: {url: 's3://b/p', options: {endpoint_url: 'https://ann:hunter2@host'}}",
        "kafka: {bootstrap: '${KAFKA_PASSWORD}.example.com:9092'}",
        "kafka: {properties: {sasl.oauthbearer.token.endpoint.url: 'https://a:hunter2@h/t'}}",
    ],
)
def test_an_address_with_a_secret_is_refused_and_the_secret_not_told_h21(
    tmp_path: Path, text: str
) -> None:
    names = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "KAFKA_PASSWORD")
    error = refusal(tmp_path, text, dict.fromkeys(names, "hunter2"))
    assert "hunter2" not in f"{error.message} {error.hint} {error.facts}"
    assert error.facts["key"]


def test_the_query_of_a_url_is_not_shown_h27(tmp_path: Path) -> None:
    key = "kafka.properties.sasl.oauthbearer.token.endpoint.url"
    url = "https://host/token?client_secret=hunter2"
    config = load(
        tmp_path, f"kafka: {{properties: {{{key.partition('properties.')[2]}: '{url}'}}}}"
    )
    shown = {setting.key: setting.value for setting in settings(config)}
    assert shown[key] == f"https://host/token?{HIDDEN}"
    assert "client_secret=hunter2" in secret_values(config)


def test_a_user_name_and_a_key_id_may_come_from_the_environment(tmp_path: Path) -> None:
    text = "kafka: {properties: {sasl.username: '${API_KEY}', sasl.password: '${API_SECRET}'}}"
    config = load(tmp_path, text, {"API_KEY": "k", "API_SECRET": "s"})
    assert config.kafka.properties == {"sasl.username": "k", "sasl.password": "s"}


def found(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Config:
    monkeypatch.chdir(folder)
    return load_config(env={})


def test_a_file_that_was_found_is_obeyed_if_nobody_else_could_write_it_h21(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "snapstore.yaml"
    file.write_text("state: {dir: /state}")
    file.chmod(0o644)
    tmp_path.chmod(0o755)
    assert found(monkeypatch, tmp_path).state.dir == "/state"
    file.chmod(0o646)
    with pytest.raises(ConfigError, match="others may write") as caught:
        found(monkeypatch, tmp_path)
    assert caught.value.hint is not None
    assert "--config" in caught.value.hint
    assert load_config(file, env={}).state.dir == "/state"
    assert load_config(env={"SNAPSTORE_CONFIG": str(file)}).state.dir == "/state"
    file.chmod(0o644)
    tmp_path.chmod(0o757)
    with pytest.raises(ConfigError, match=f"others may write {tmp_path}"):
        found(monkeypatch, tmp_path)
    tmp_path.chmod(0o755)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("given", ["file", "folder", "link"])
def test_a_file_of_another_user_that_was_found_is_not_obeyed_h21(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    file = tmp_path / "snapstore.yaml"
    if given == "link":
        (tmp_path / "real.yaml").write_text("state: {dir: /state}")
        file.symlink_to("real.yaml")
        os.lchown(file, 12345, 12345)
    else:
        file.write_text("state: {dir: /state}")
        os.chown({"file": file, "folder": tmp_path}[given], 12345, 12345)
    with pytest.raises(ConfigError, match=r"belongs to another user \(uid 12345\)"):
        found(monkeypatch, tmp_path)
    assert load_config(file, env={}).state.dir == "/state"


@pytest.mark.parametrize("name", sorted(CODE_KEYS))
def test_code_is_loaded_only_where_the_file_was_named_h21(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    file = tmp_path / "snapstore.yaml"
    file.write_text(f"kafka: {{properties: {{{name}: /tmp/evil}}}}")
    with pytest.raises(ConfigError, match="loads a library or runs a command") as caught:
        found(monkeypatch, tmp_path)
    assert caught.value.facts["key"] == f"kafka.properties.{name}"
    assert load_config(file, env={}).kafka.properties == {name: "/tmp/evil"}


def test_every_setting_is_listed_with_its_origin(tmp_path: Path) -> None:
    listed = settings(load(tmp_path, "retention: {keep_within: 36h}"))
    by_key = {setting.key: setting for setting in listed}
    assert by_key["retention.keep_within"].value == "1d12h"
    assert by_key["retention.keep_within"].origin == str(tmp_path / "given.yaml")
    assert by_key["transfer.parallel"].value == Sections().transfer.parallel
    assert by_key["transfer.parallel"].origin == "default"


def field_names(struct: type[msgspec.Struct]) -> set[str]:
    names = set()
    for field in msgspec.structs.fields(struct):
        names.add(field.encode_name)
        inner = field.type
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            names |= field_names(inner)
    return names


def test_the_example_file_loads_and_names_every_key() -> None:
    config = load_config(EXAMPLE, env={})
    assert config.repository.url
    text = EXAMPLE.read_text()
    for name in field_names(Sections) | field_names(StoreConfig):
        assert f"{name}:" in text, f"{name} is not in {EXAMPLE.name}"


def test_the_example_file_names_every_option_of_s3_and_rocksdb_with_its_default() -> None:
    config = load_config(EXAMPLE, env={})
    assert check(config)
    registry = Registry()
    for kind, name, given in (
        ("storages", "s3", config.repository.options),
        ("backends", "rocksdb", config.backends["rocksdb"]),
    ):
        options = registry.options_type(kind, name)  # type: ignore[arg-type]
        assert set(given) == {field.name for field in msgspec.structs.fields(options)}
        assert decode(given, options) == options()


def test_the_starter_file_loads_as_it_is() -> None:
    assert load_config(Path(config_package.__path__[0], "starter.yaml"), env={}).sections == (
        Sections()
    )
