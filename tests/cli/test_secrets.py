"""No command ever prints a secret, whatever it is asked, and whatever goes wrong."""

import os
from pathlib import Path

import pytest

from snapstore.cli.verbs import COMMANDS
from tests.cli.conftest import Cli

pytestmark = pytest.mark.slow

SECRETS = {
    "password": "hunter2-kafka-password",
    "access": "AKIDEXAMPLEACCESS",
    "secret": "wJalrXUtnFEMIK7MDENGbPxRfiCY",
    "session": "FwoGZXIvYXdzEJr-session-token",
    "proxy": "proxy-s3cr3t-word",
    "key": "ssl-key-passphrase",
}
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "init": ("init", "--exist-ok"),
    "discover": ("discover", "--state-dir", "STATE"),
    "snapshot": ("snapshot", "count", "--state-dir", "STATE"),
    "list": ("list",),
    "show": ("show", "ks440-alos/count:0"),
    "diff": ("diff", "ks440-alos/count:0", "ks440-alos/count:0"),
    "restore": ("restore", "ks440-alos/count:0", "--target", "new"),
    "verify": ("verify",),
    "fsck": ("fsck", "--state-dir", "STATE"),
    "prepare": ("prepare", "--state-dir", "STATE"),
    "status": ("status",),
    "drill": ("drill", "ks440-alos/count:0"),
    "replay": ("replay", "--state-dir", "STATE"),
    "pin": ("pin", "ks440-alos/count:0"),
    "unpin": ("unpin", "ks440-alos/count:0"),
    "delete": ("delete", "ks440-alos/count:0", "--dry-run"),
    "prune": ("prune", "--dry-run"),
    "repair": ("repair", "--dry-run"),
    "config": ("config", "show"),
    "plugins": ("plugins",),
    "demo": ("demo", "--help"),
}


@pytest.fixture
def config(filled: str, tmp_path: Path) -> Path:
    """A configuration full of secrets, for a repository that works."""
    path = tmp_path / "secret.yaml"
    path.write_text(
        f"repository: {{url: '{filled}'}}\n"
        "kafka:\n"
        "  properties:\n"
        "    security.protocol: SASL_PLAINTEXT\n"
        "    sasl.mechanism: PLAIN\n"
        "    sasl.username: someone\n"
        f"    sasl.password: {SECRETS['password']}\n"
        f"    ssl.key.password: {SECRETS['key']}\n"
        "    socket.timeout.ms: 1000\n"
        "    request.timeout.ms: 1000\n"
    )
    return path


def environment() -> dict[str, str]:
    return {
        "AWS_ACCESS_KEY_ID": SECRETS["access"],
        "AWS_SECRET_ACCESS_KEY": SECRETS["secret"],
        "AWS_SESSION_TOKEN": SECRETS["session"],
        "HTTPS_PROXY": f"http://user:{SECRETS['proxy']}@localhost:1",
    }


def require_silence(text: str) -> None:
    told = [name for name, secret in SECRETS.items() if name != "access" and secret in text]
    assert not told, text


def test_every_command_is_asked() -> None:
    assert set(ARGUMENTS) >= set(COMMANDS)


@pytest.mark.parametrize("command", sorted(COMMANDS))
@pytest.mark.parametrize("loudness", [("-vv",), ("--json", "-vv")], ids=["vv", "json"])
def test_no_command_prints_a_secret(
    cli: Cli, config: Path, state_dir: Path, command: str, loudness: tuple[str, ...]
) -> None:
    given = [state_dir if each == "STATE" else each for each in ARGUMENTS[command]]
    result = cli(*given, *loudness, "-c", config, env=environment())
    assert result.code != 1, result.err
    require_silence(result.out + result.err)


@pytest.mark.parametrize("loudness", [("-vv",), ("--json", "-vv")])
@pytest.mark.parametrize("command", ["list", "init", "prune", "repair", "verify"])
def test_no_failure_of_a_storage_prints_a_secret_g104(
    cli: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    loudness: tuple[str, ...],
) -> None:
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    path = tmp_path / "s3.yaml"
    path.write_text(
        "repository:\n"
        "  url: s3://bucket/prefix\n"
        "  options:\n"
        "    endpoint_url: http://localhost:1\n"
        "    region: us-east-1\n"
        "    max_attempts: 1\n"
        f"    proxies: {{http: 'http://user:{SECRETS['proxy']}@localhost:1'}}\n"
    )
    result = cli(command, *loudness, "-c", path, env=environment())
    assert result.code == 12
    require_silence(result.out + result.err)


def test_no_failure_of_kafka_prints_a_secret_g104(cli: Cli, config: Path) -> None:
    config.write_text(config.read_text().replace("kafka:", "kafka:\n  bootstrap: localhost:1"))
    result = cli("status", "--json", "-vv", "-c", config, env=environment())
    assert result.code not in (0, 1)
    require_silence(result.out + result.err)


def test_what_the_host_keeps_is_readable_by_its_user_alone_h27(
    cli: Cli, config: Path, state_dir: Path, tmp_path: Path
) -> None:
    log, cache = tmp_path / "log", tmp_path / "cache"
    config.write_text(
        config.read_text()
        + f"logging: {{level: debug, file: '{log}'}}\nstate: {{cache_dir: '{cache}'}}\n"
    )
    before = os.umask(0o022)
    try:
        assert cli("snapshot", "-c", config, "--state-dir", state_dir, "--task", "1_0").code == 0
    finally:
        os.umask(before)
    folders = [path for path in (cache, *cache.rglob("*")) if path.is_dir()]
    assert len(folders) > 1
    for folder in folders:
        assert folder.stat().st_mode & 0o077 == 0, folder
    assert log.stat().st_mode & 0o777 == 0o600


def test_the_log_file_holds_no_secret(cli: Cli, config: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    config.write_text(config.read_text() + f"logging: {{level: debug, file: '{log}'}}\n")
    cli("verify", "-c", config, env=environment())
    cli("status", "-c", config, env=environment())
    require_silence(log.read_text())


def test_the_configuration_is_shown_with_its_secrets_hidden(cli: Cli, config: Path) -> None:
    result = cli("config", "show", "-c", config)
    assert "sasl.password" in result.out
    require_silence(result.out)


@pytest.mark.parametrize("form", [(), ("--json",), ("-v", "-v"), ("--json", "-v", "-v")])
def test_a_token_with_a_line_feed_is_told_by_its_name_and_not_shown_h28(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: tuple[str, ...]
) -> None:
    keys = {
        "AWS_ACCESS_KEY_ID": SECRETS["access"],
        "AWS_SECRET_ACCESS_KEY": SECRETS["secret"],
        "AWS_SESSION_TOKEN": f"{SECRETS['session']}\n",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
    }
    for name, value in keys.items():
        monkeypatch.setenv(name, value)
    log = tmp_path / "log"
    config = tmp_path / "logging.yaml"
    config.write_text(f"logging: {{level: debug, file: '{log}'}}")

    answer = cli("list", "-r", "s3://bucket/p", "-c", config, *form, env=keys)

    assert answer.code == 2
    assert "AWS_SESSION_TOKEN ends in a line feed" in answer.err
    assert SECRETS["session"] not in answer.out + answer.err + log.read_text()
