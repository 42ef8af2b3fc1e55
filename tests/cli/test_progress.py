"""Progress: bars on a terminal, a line now and then in a log, and notes always."""

import os
import pty
import select
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from snapstore.cli.bars import Bars, shown_rate
from snapstore.cli.progress import JsonLines, Lines, choose_reporter
from snapstore.cli.reporter import Reporter
from snapstore.model.identity import StoreId
from snapstore.model.report import Advanced, Noted, Planned, StoreFinished, StoreStarted

COUNTS = StoreId("orders", "0_3", "counts")


def same(text: str) -> str:
    return text


def test_a_log_gets_one_line_every_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    lines = Lines(same, clock=lambda: now)
    lines(StoreStarted(store=COUNTS, stage="upload", total=4 << 20))
    for _ in range(30):
        now += 1
        lines(Advanced(store=COUNTS, stage="upload", amount=1 << 16))
    told = capsys.readouterr().err.splitlines()
    assert told == [
        "0 done; orders/0_3/counts 640 KiB of 4.0 MiB",
        "0 done; orders/0_3/counts 1.2 MiB of 4.0 MiB",
        "0 done; orders/0_3/counts 1.9 MiB of 4.0 MiB",
    ]


def test_a_replay_tells_its_rate_its_lag_and_the_time_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = 0.0
    lines = Lines(same, clock=lambda: now)
    lines(StoreStarted(store=COUNTS, stage="replay", total=90_000, unit="records"))
    now = 10
    lines(Advanced(store=COUNTS, stage="replay", amount=30_000))
    assert capsys.readouterr().err == (
        "0 done; orders/0_3/counts 30,000 of 90,000 records, 60,000 behind, 3,000/s, 20 s to go\n"
    )


def test_the_totals_are_those_of_the_whole_plan_from_the_start_h42(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = 0.0
    lines = Lines(same, clock=lambda: now)
    stores = [StoreId("orders", f"0_{number}", "counts") for number in range(500)]
    lines(Planned(sizes={str(store): 1 << 20 for store in stores}))
    # Files in use were fewer than the folder held; one is begun again; one is not sent at all.
    for total in (1 << 20, 1 << 19):
        lines(StoreStarted(store=stores[0], stage="upload", total=total))
        lines(Advanced(store=stores[0], stage="upload", amount=1 << 18))
    lines(StoreFinished(store=stores[1], outcome="unchanged", ok=True))
    now = 10
    lines(StoreFinished(store=stores[0], outcome="stored", ok=True))
    lines(StoreStarted(store=stores[2], stage="upload", total=1 << 20))
    now = 20
    lines(Advanced(store=stores[2], stage="upload", amount=1 << 19))
    assert capsys.readouterr().err.splitlines() == [
        "2 of 500 stores done, 256 KiB of 498 MiB, 2 h 46 min to go; nothing under way",
        "2 of 500 stores done, 768 KiB of 498 MiB, 2 h 45 min to go; "
        "orders/0_2/counts 512 KiB of 1.0 MiB",
    ]


def test_the_bar_of_all_stores_counts_those_that_are_not_begun_h42() -> None:
    with Bars(same) as bars:
        stores = [StoreId("orders", f"0_{number}", "counts") for number in range(8)]
        bars(Planned(sizes={str(store): 1000 for store in stores}))
        bars(StoreStarted(store=stores[0], stage="download", total=1000))
        bars(Advanced(store=stores[0], stage="download", amount=500))
        total = bars.tasks[0]
        assert (total.description, total.completed, total.total) == (
            "total (0 of 8 stores)",
            500,
            8000,
        )


def test_a_finished_store_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    lines = Lines(same, clock=lambda: now)
    lines(StoreStarted(store=COUNTS, stage="replay", total=None, unit="records"))
    now = 11
    lines(StoreFinished(store=COUNTS, outcome="done", ok=True))
    assert capsys.readouterr().err == "1 done; nothing under way\n"


def test_notes_are_told_at_once_and_only_once(capsys: pytest.CaptureFixture[str]) -> None:
    reporter = Reporter(lambda text: text.replace("secret", "(hidden)"))
    for _ in range(2):
        reporter(Noted(message="secret \x1b[2J"))
    assert capsys.readouterr().err == "note: (hidden) \\x1b[2J\n"
    assert reporter.notes == ["secret \x1b[2J"]


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"json": True}, Reporter),
        ({"json": True, "verbose": 1}, JsonLines),
        ({"quiet": True}, Reporter),
        ({"no_progress": True}, Reporter),
        ({}, Lines),
    ],
)
def test_the_way_of_telling_fits_the_options(
    options: dict[str, int], kind: type[Reporter], capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = choose_reporter(
        json=bool(options.get("json")),
        quiet=bool(options.get("quiet")),
        verbose=options.get("verbose", 0),
        no_progress=bool(options.get("no_progress")),
        redact=same,
    )
    assert type(chosen) is kind


def test_bars_take_events_of_many_threads() -> None:
    with Bars(same) as bars:
        stores = [StoreId("orders", f"0_{number}", "counts") for number in range(8)]

        def work(store: StoreId) -> None:
            bars(StoreStarted(store=store, stage="upload", total=1000))
            for _ in range(100):
                bars(Advanced(store=store, stage="upload", amount=10))
            bars(StoreFinished(store=store, outcome="done", ok=True))

        threads = [threading.Thread(target=work, args=(store,)) for store in stores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        [total] = bars.tasks
        assert (total.completed, total.total) == (8000, 8000)


def test_the_rate_is_that_of_the_whole_transfer_and_of_what_was_moved() -> None:
    store = StoreId("orders", "0_0", "counts")
    with Bars(same) as bars:
        bars(StoreStarted(store=store, stage="upload", total=40 << 20))
        time.sleep(0.5)
        bars(Advanced(store=store, stage="upload", amount=20 << 20, moved=False))
        for _ in range(4):
            bars(Advanced(store=store, stage="upload", amount=1 << 20))
        for task in bars.tasks:
            assert task.completed == 24 << 20
            rate = shown_rate(task)
            assert rate is not None
            assert rate <= 8 << 20, "four pieces in half a second or more"


@pytest.mark.parametrize("no_color", [False, True])
def test_a_terminal_gets_colour_unless_it_is_not_wanted(tmp_path: Path, no_color: bool) -> None:
    shown = on_a_terminal(
        [sys.executable, "-m", "snapstore", "config", "show"],
        tmp_path,
        {"NO_COLOR": "1"} if no_color else {},
    )
    assert "repository.url" in shown
    assert ("\x1b[" in shown) is not no_color


def on_a_terminal(command: list[str], folder: Path, env: dict[str, str]) -> str:
    """Run a command with stdout and stderr on a pseudo-terminal; return what it showed."""
    leader, follower = pty.openpty()
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=follower,
        stderr=follower,
        cwd=folder,
        env={**{name: os.environ[name] for name in ("PATH", "HOME")}, "TERM": "xterm", **env},
    ) as process:
        os.close(follower)
        shown = b""
        while select.select([leader], [], [], 120)[0]:
            try:
                chunk = os.read(leader, 65536)
            except OSError:
                # How Linux tells that the other side of a terminal was closed.
                break
            shown += chunk
        process.wait(timeout=120)
    os.close(leader)
    return shown.decode()
