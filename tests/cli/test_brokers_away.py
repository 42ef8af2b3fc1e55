"""Brokers that are away: one answer for the whole command, and none of the driver's own lines."""

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from snapstore.errors import KafkaError
from snapstore.kafka.changelog import KafkaChangelog
from snapstore.model.identity import ChangelogPartition
from tests.support.answer import Answer
from tests.support.command import Command
from tests.support.mend_lab import uneven_state
from tests.support.streams_store import APPLICATION

REFUSING = "127.0.0.1:1"
STORES = 4
ANSWER = f"no answer from Kafka at {REFUSING} within 8 s: "


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of somebody who accepts connections and says nothing."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.slow
def test_every_command_gives_one_answer_and_no_line_of_the_driver_h33(tmp_path: Path) -> None:
    state_dir = uneven_state(tmp_path / "state", (99, 99, 99))
    home, repository = tmp_path / "home", str(tmp_path / "repository")
    here = Command(home, repository)
    here("init")
    here("snapshot", "--state-dir", state_dir)
    away = Command(home / "away", repository, sections={"kafka": {"bootstrap": REFUSING}})
    target = ("--target", tmp_path / "new")
    lines: list[tuple[object, ...]] = [
        ("status",),
        ("drill",),
        ("restore", "--application", APPLICATION, *target),
        ("restore", "--application", APPLICATION, *target, "-q"),
        ("snapshot", "--state-dir", state_dir),
        ("fsck", state_dir),
        ("prepare", state_dir, "--application", APPLICATION),
        ("replay", state_dir, "--application", APPLICATION, "--allow-unchecked-changelog"),
    ]
    with ThreadPoolExecutor(len(lines)) as threads:
        answers = list(threads.map(lambda line: away(*line, expect=12), lines))
    for line, answer in zip(lines, answers, strict=True):
        assert reasons(answer) == {True}, (line, answer)


def reasons(answer: Answer) -> set[bool]:
    """Whether each reason that is given is the one answer; stderr is one document or nothing."""
    if answer.err:
        error = answer.error
        found = [error["message"]]
        assert error["exit_code"] == 12
    else:
        items = answer.document["items"]
        assert len(items) == STORES
        found = [str(item) for item in items]
    return {ANSWER in text and "Connection refused" in text for text in found}


def test_whoever_asks_after_the_first_gets_its_answer_at_once_h33(silent: str) -> None:
    partition = ChangelogPartition("orders-counts-changelog", 0)
    with closing(KafkaChangelog(silent, timeout_seconds=3)) as changelog:

        def ask(_: int) -> str:
            with pytest.raises(KafkaError, match="connections are neither refused nor") as error:
                changelog.inspect(partition, now=datetime.now(UTC))
            return error.value.message

        began = time.monotonic()
        with ThreadPoolExecutor(8) as threads:
            told = set(threads.map(ask, range(40)))
        # Each alone would have waited for three seconds: eight at a time, fifteen.
        assert time.monotonic() - began < 12
        assert told == {
            f"no answer from Kafka at {silent} within 3 s: "
            "connections are neither refused nor answered"
        }


def test_after_a_while_the_brokers_are_asked_again_h33(silent: str) -> None:
    with closing(KafkaChangelog(silent, timeout_seconds=0.5)) as changelog:
        for _ in range(2):
            began = time.monotonic()
            with pytest.raises(KafkaError):
                changelog.reach()
            assert time.monotonic() - began >= 0.5
            time.sleep(0.5)
