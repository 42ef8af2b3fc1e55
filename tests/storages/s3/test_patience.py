"""A storage that does not answer, or tells another time: what is said, and when it ends."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import msgspec
import pytest

from snapstore.errors import CredentialsError, StorageError
from snapstore.model.report import Event, Noted
from snapstore.storages.s3 import S3Options, S3Storage
from snapstore.storages.s3.connection import S3Connection
from snapstore.storages.s3.patience import Patience
from tests.storages.s3.conftest import BUCKET, MIB, OpenS3
from tests.support.s3_proxy import Change, Reply, Request, S3Proxy, s3_error


@contextmanager
def silent_server() -> Iterator[str]:
    """Accept every connection and never answer."""
    held = []
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def accept() -> None:
            while True:
                try:
                    held.append(server.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in held:
                connection.close()


def impatient(endpoint_url: str, **options: object) -> S3Options:
    chosen = {
        "endpoint_url": endpoint_url,
        "read_timeout": timedelta(milliseconds=300),
        "give_up_after": timedelta(seconds=1),
        **options,
    }
    return S3Options(**chosen)  # type: ignore[arg-type]


def test_a_silent_server_is_given_up_and_not_asked_for_each_object_again_h34(
    s3_credentials: None,
) -> None:
    with silent_server() as url, closing(S3Storage(f"s3://{BUCKET}", impatient(url))) as storage:
        began = time.monotonic()
        with pytest.raises(StorageError, match=f"no answer from {url} .*; given up after") as first:
            storage.get("k", limit_bytes=10)
        given_up = time.monotonic()
        for key in range(50):
            with pytest.raises(StorageError, match=f"not tried any more: no answer from {url}"):
                storage.get(str(key), limit_bytes=10)
        after = time.monotonic()

    assert given_up - began < 60
    assert after - given_up < 1
    assert first.value.hint is not None
    assert "repository.options.give_up_after" in first.value.hint


def test_a_silent_server_is_told_of_while_it_is_waited_for_h34(s3_credentials: None) -> None:
    heard: list[Event] = []
    came = threading.Event()

    def hear(event: Event) -> None:
        heard.append(event)
        came.set()

    options = impatient(
        "http://unused", read_timeout=timedelta(seconds=60), give_up_after=timedelta(seconds=90)
    )
    with silent_server() as url:
        chosen = msgspec.structs.replace(options, endpoint_url=url)
        connection = S3Connection(chosen, tell_after_s=0.2)
        connection.notes.listen(hear)
        asking = threading.Thread(target=lambda: _ask(connection), daemon=True)
        asking.start()
        assert came.wait(30)

    (event,) = heard
    assert isinstance(event, Noted)
    assert event.message == (
        "waiting for the storage: no answer so far; it is given up after 1 min 30 s "
        "(repository.options.give_up_after)"
    )
    asking.join()
    connection.close()


def _ask(connection: S3Connection) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011 - the server goes away meanwhile
        connection.run(lambda client: client.head_bucket(Bucket=BUCKET))


def test_a_server_that_answers_errors_for_too_long_is_given_up_h34(
    proxy: S3Proxy, open_s3: OpenS3
) -> None:
    storage = open_s3(max_attempts=1000, give_up_after=timedelta(seconds=1))
    storage.put("other", b"x")
    proxy.rules.append(
        lambda request: s3_error(503, "SlowDown") if request.path.endswith("/k") else None
    )

    with pytest.raises(StorageError, match=r"answers with SlowDown \(HTTP 503\); given up after"):
        storage.get("k", limit_bytes=10)
    assert storage.get("other", limit_bytes=10) == b"x"


def test_a_body_that_stays_away_is_given_up_h34(proxy: S3Proxy, open_s3: OpenS3) -> None:
    storage = open_s3(max_attempts=1000, give_up_after=timedelta(seconds=1))
    storage.put("k", bytes(MIB))

    def cut(reply: Reply) -> Reply:
        return msgspec.structs.replace(reply, cut_after=0)

    def rule(request: Request) -> Change | None:
        return cut if request.method == "GET" else None

    proxy.rules.append(rule)

    with pytest.raises(StorageError, match="the connection broke at byte 0; given up after"):
        list(storage.read("k", start=0, stop=MIB))


def test_a_server_that_is_back_is_asked_again_h34(proxy: S3Proxy, open_s3: OpenS3) -> None:
    now = [0.0]
    patience = Patience(timedelta(seconds=10), lambda _: None, clock=lambda: now[0])
    request = {"url": f"{proxy.url}/b/k?x"}

    with patience.waiting():
        now[0] = 11.0
        with pytest.raises(StorageError, match=f"no answer from {proxy.url} .OSError.; given up"):
            patience.after_attempt(None, request, OSError())
    with pytest.raises(StorageError, match="not tried any more"), patience.waiting():
        pass
    now[0] = 22.0
    with patience.waiting():
        now[0] = 23.0
        patience.after_attempt(None, request, OSError())
    patience.close()


def test_bytes_that_move_are_an_answer_h34() -> None:
    now = [0.0]
    patience = Patience(timedelta(seconds=10), lambda _: None, clock=lambda: now[0])

    with patience.waiting():
        for _ in range(5):
            now[0] += 9.0
            patience.moved()
        patience.after_attempt(None, {"url": "http://host/k"}, OSError())
        now[0] += 11.0
        with pytest.raises(StorageError, match="given up after 11 s"):
            patience.after_attempt(None, {"url": "http://host/k"}, OSError())
    patience.close()


def dated(ahead: timedelta) -> Change:
    """Let the storage's clock be ahead of this machine's."""

    def change(reply: Reply) -> Reply:
        date = format_datetime(datetime.now(UTC) + ahead, usegmt=True)
        return msgspec.structs.replace(reply, headers={**reply.headers, "date": date})

    return change


@pytest.mark.parametrize(
    ("ahead", "said"),
    [
        (timedelta(hours=3), "behind the storage's"),
        (timedelta(hours=-3), "ahead of the storage's"),
        (timedelta(seconds=10), None),
    ],
)
def test_a_clock_that_differs_is_told_with_the_difference_h75(
    proxy: S3Proxy, storage: S3Storage, ahead: timedelta, said: str | None
) -> None:
    heard: list[Event] = []
    storage.listen(heard.append)
    proxy.rules.append(lambda _: dated(ahead))

    storage.stat("k")
    storage.stat("k")

    notes = [event.message for event in heard if isinstance(event, Noted)]
    if said is None:
        assert notes == []
    else:
        assert len(notes) == 1
        assert said in notes[0]
        assert any(lasting in notes[0] for lasting in ("3 h 00 min", "2 h 59 min", "3 h 01 min"))


@pytest.mark.parametrize("code", ["RequestTimeTooSkewed", "AccessDenied", "SignatureDoesNotMatch"])
def test_a_clock_that_is_off_is_not_blamed_on_a_policy_h75(
    proxy: S3Proxy, storage: S3Storage, code: str
) -> None:
    refused = s3_error(403, code)
    proxy.rules.append(lambda _: dated(timedelta(hours=3))(refused))

    for attempt in (
        lambda: storage.stat("k"),
        lambda: storage.get("k", limit_bytes=10),
        lambda: storage.put("k", b""),
        lambda: list(storage.list("")),
    ):
        with pytest.raises(CredentialsError, match="behind the storage's") as caught:
            attempt()
        assert caught.value.hint == "set the clock of this machine"


def test_the_storage_tells_the_time_of_its_last_answer_h75(
    proxy: S3Proxy, storage: S3Storage
) -> None:
    proxy.rules.append(lambda _: dated(timedelta(hours=3)))
    storage.stat("k")
    told = storage.now(writing=False)
    assert told is not None
    ahead = told - datetime.now(UTC)
    assert abs(ahead - timedelta(hours=3)) < timedelta(minutes=1)
