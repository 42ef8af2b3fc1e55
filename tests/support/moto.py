"""A moto server: an S3 double that honours conditional puts but believes every checksum."""

from typing import TYPE_CHECKING

import boto3

from snapstore.cli.demo.server import moto_server as moto_server

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def make_bucket(
    endpoint_url: str, bucket: str, *, access_key: str = "a", secret: str = "s"
) -> None:
    """Create a bucket on any S3 server."""
    client = _client(endpoint_url, access_key, secret)
    client.create_bucket(Bucket=bucket)
    client.close()


def keep_versions(endpoint_url: str, bucket: str) -> None:
    """Let a bucket keep what is deleted from now on as an old version."""
    client = _client(endpoint_url, "a", "s")
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    client.close()


def _client(endpoint_url: str, access_key: str, secret: str) -> "S3Client":
    return boto3.client(
        "s3",
        endpoint_url=endpoint_url,
        region_name="us-east-1",
        aws_access_key_id=access_key,
        aws_secret_access_key=secret,
    )
