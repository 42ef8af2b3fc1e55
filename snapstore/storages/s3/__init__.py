"""Objects in a bucket of AWS S3 or of any server that speaks its protocol: ``s3://bucket/prefix``.

What a server must do: conditional puts (``If-None-Match: *``) and, to be trusted with uploads,
checks of ``x-amz-checksum-sha256``.
"""

from snapstore.storages.s3.options import S3Options
from snapstore.storages.s3.storage import S3Storage

__all__ = ["S3Options", "S3Storage"]
