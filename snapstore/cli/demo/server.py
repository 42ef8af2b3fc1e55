"""An S3 server inside this process, for the time of the demonstration."""

import http.client
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

from moto.server import ThreadedMotoServer

BUCKET = "snapshots"


@contextmanager
def s3_server() -> Iterator[str]:
    """Run it on a free port of this host, with one bucket; yields its URL."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        connection = http.client.HTTPConnection(host, port, timeout=30)
        connection.request("PUT", f"/{BUCKET}")
        answer = connection.getresponse()
        answer.read()
        connection.close()
        if answer.status != http.client.OK:
            raise OSError(f"the S3 server answered {answer.status}")
        yield f"http://{host}:{port}"
    finally:
        server.stop()


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
