"""A moto server: an S3 double that honours conditional puts but believes every checksum."""

from collections.abc import Iterator
from contextlib import contextmanager

import boto3
from moto.server import ThreadedMotoServer


@contextmanager
def moto_server() -> Iterator[str]:
    """Run one on a free port; yields its URL."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def make_bucket(
    endpoint_url: str, bucket: str, *, access_key: str = "a", secret: str = "s"
) -> None:
    """Create a bucket on any S3 server."""
    client = boto3.client(
        "s3",
        endpoint_url=endpoint_url,
        region_name="us-east-1",
        aws_access_key_id=access_key,
        aws_secret_access_key=secret,
    )
    client.create_bucket(Bucket=bucket)
    client.close()
