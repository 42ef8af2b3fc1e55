"""The jars of one Kafka version and the compiled application: fetched once, kept in a cache."""

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
HARNESS = PROJECT / "tests" / "kafka_streams" / "harness"
CACHE = Path(os.environ.get("SNAPSTORE_TEST_CACHE", PROJECT / ".cache")) / "kafka-streams"

BROKER_VERSION = "4.4.0"
VERSIONS = ("4.4.0", "4.3.1", "4.2.1")

# Most programs here live for seconds: the optimising compiler would cost more than it saves.
SHORT_LIVED = ("-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
LONG_LIVED = ("-Xmx1g", "-XX:+UseSerialGC")


def missing_tools() -> list[str]:
    """The programs that a broker and an application need and this machine lacks."""
    return [tool for tool in ("java", "javac", "mvn") if shutil.which(tool) is None]


def java(
    version: str, main: str, *arguments: str, options: tuple[str, ...] = SHORT_LIVED
) -> list[str]:
    """The command line of a program from the jars of that version."""
    logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    return ["java", logging, *options, "-cp", class_path(version), main, *arguments]


def class_path(version: str) -> str:
    """Fetch and compile on first use; safe when several processes ask at once."""
    sources = sorted((HARNESS / "src").glob("*.java"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    jars = CACHE / version
    classes = CACHE / f"classes-{version}-{digest[:12]}"
    with _locked(CACHE):
        if not jars.exists():
            _fetch(version, jars)
        if not classes.exists():
            _compile(sources, jars, classes)
    return f"{classes}:{jars}/*"


def _fetch(version: str, target: Path) -> None:
    part = _fresh(target)
    pom = HARNESS / "pom.xml"
    goal = "dependency:copy-dependencies"
    command = ["mvn", "-q", "-B", "-f", str(pom), f"-Dkafka.version={version}", goal]
    subprocess.run([*command, f"-DoutputDirectory={part}"], check=True, stdin=subprocess.DEVNULL)
    part.rename(target)


def _compile(sources: list[Path], jars: Path, target: Path) -> None:
    part = _fresh(target)
    command = ["javac", "-nowarn", "--release", "17", "-cp", f"{jars}/*", "-d", str(part)]
    subprocess.run([*command, *map(str, sources)], check=True, stdin=subprocess.DEVNULL)
    part.rename(target)


def _fresh(target: Path) -> Path:
    """Where to build what appears under its name only when complete."""
    part = target.with_name(target.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    return part


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    for wanted in VERSIONS:
        class_path(wanted)
