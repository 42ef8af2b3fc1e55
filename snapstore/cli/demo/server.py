"""An S3 server inside this process, for the time of the demonstration."""

import http.client
import logging
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

BUCKET = "snapshots"


class OneClaimAtATime:
    """A WSGI application around moto, which looks whether a key is free and only then stores it.

    In between another of its threads may take the same key, and both would be told that they have.
    """

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application
        self._turn = threading.Lock()

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        if "HTTP_IF_NONE_MATCH" not in environ:
            return self._application(environ, start_response)
        with self._turn:
            return [*self._application(environ, start_response)]


@contextmanager
def moto_server() -> Iterator[str]:
    """Run moto on a free port of this host; yields its URL."""
    application = OneClaimAtATime(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True)
    thread = threading.Thread(target=server.serve_forever, name="moto", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def s3_server() -> Iterator[str]:
    """Run it on a free port of this host, with one bucket; yields its URL."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    with moto_server() as url:
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
        connection.request("PUT", f"/{BUCKET}")
        answer = connection.getresponse()
        answer.read()
        connection.close()
        if answer.status != http.client.OK:
            raise OSError(f"the S3 server answered {answer.status}")
        yield url


def without_own_settings(environment: os._Environ[str] | dict[str, str]) -> dict[str, str]:
    """Return the environment without AWS and snapstore settings, and with made-up credentials."""
    kept = {
        name: value
        for name, value in environment.items()
        if not name.startswith(("AWS_", "SNAPSTORE_"))
    }
    return {
        **kept,
        "AWS_ACCESS_KEY_ID": "demo",
        "AWS_SECRET_ACCESS_KEY": "made-up-for-this-demo",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
