"""A moto server: an S3 double that honours conditional puts but believes every checksum."""

import boto3

from snapstore.cli.demo.server import moto_server as moto_server


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
