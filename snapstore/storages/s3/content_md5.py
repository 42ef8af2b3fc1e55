"""The header without which older servers refuse to delete many objects at once."""

import base64
import hashlib
from collections.abc import Mapping
from typing import Any


def add_content_md5(params: Mapping[str, Any], **_: object) -> None:
    """Give a DeleteObjects request the header that older servers insist on.

    botocore sends a newer checksum instead; AWS takes both.
    """
    digest = hashlib.md5(params["body"], usedforsecurity=False).digest()
    params["headers"]["Content-MD5"] = base64.b64encode(digest).decode("ascii")
