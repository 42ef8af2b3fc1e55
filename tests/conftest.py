"""A clean environment for every test, the shared broker, and no silent skips in CI."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.broker import Broker
from tests.support.jars import missing_tools
from tests.support.seaweedfs import ACCESS_KEY, SECRET_KEY, seaweedfs_server
from tests.support.streams_lab import StreamsLab

_skipped: list[str] = []

# How long an example takes says nothing on a busy machine; in CI the examples are always the same.
settings.register_profile(
    "tests",
    deadline=None,
    derandomize=os.environ.get("CI") == "true",
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tests")


@pytest.fixture(autouse=True)
def clean_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Nothing of the person's own settings reaches a test; returns the empty home."""
    for name in os.environ:
        if name.startswith(("AWS_", "SNAPSTORE_", "XDG_")):
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / ".cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return home


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One real broker for the whole session. Use topics of your own, and never stop it."""
    with Broker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture
def lab(broker: Broker, tmp_path: Path) -> Iterator[StreamsLab]:
    """Applications and inputs of this test on the shared broker."""
    laboratory = StreamsLab(broker, tmp_path / "lab")
    yield laboratory
    laboratory.close()


@pytest.fixture(scope="session")
def moto_url() -> Iterator[str]:
    """One S3 double for the whole session, without buckets; it believes every checksum."""
    from tests.support.moto import moto_server  # takes a second that most runs can save

    with moto_server() as url:
        yield url


@pytest.fixture(scope="session")
def seaweedfs_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One real S3 server for the whole session, without buckets."""
    with seaweedfs_server(tmp_path_factory.mktemp("seaweedfs")) as url:
        yield url


@pytest.fixture
def s3_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys that both S3 servers take, in the environment."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)


def pytest_configure() -> None:
    """Heed SIGINT, which a shell ignores in the background; what tests start inherits that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever asks for the broker is a Kafka test; without Java those are skipped."""
    missing = missing_tools()
    for item in items:
        if "broker" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.kafka)
        if missing and item.get_closest_marker("kafka"):
            item.add_marker(pytest.mark.skip(reason=f"missing: {', '.join(missing)}"))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        _skipped.append(report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.skipped:
        _skipped.append(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if os.environ.get("CI") == "true" and _skipped:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if os.environ.get("CI") == "true":
        for name in _skipped:
            terminalreporter.write_line(f"skipped, which CI does not allow: {name}", red=True)
