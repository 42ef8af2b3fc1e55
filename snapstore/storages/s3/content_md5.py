"""The one header by which servers of any age believe a request to delete many objects."""

import base64
import hashlib
from collections.abc import Mapping
from typing import Any


def only_content_md5(params: Mapping[str, Any], **_: object) -> None:
    """Give a DeleteObjects request the header that older servers insist on, and no newer one.

    botocore sends a CRC32 in its place, which some of them refuse; AWS takes either.
    """
    digest = hashlib.md5(params["body"], usedforsecurity=False).digest()
    params["headers"]["Content-MD5"] = base64.b64encode(digest).decode("ascii")
    params["context"].get("checksum", {}).pop("request_algorithm", None)
    params["headers"].pop("x-amz-sdk-checksum-algorithm", None)
