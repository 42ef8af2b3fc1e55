"""What the protocol requires of an answer, looked at before botocore makes something of it.

botocore reads whatever is missing as nothing: an empty 200 is a listing without objects to it, and
any 404 an object that is not there. Behind a proxy, a gateway without a backend or a page for
guests that would be taken for the storage's word.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote_plus, urlsplit

INCOMPLETE: Final = "IncompleteAnswer"
FOREIGN: Final = "NotFromStorage"
REDIRECTED: Final = "Redirected"

_IS_TRUNCATED: Final = re.compile(rb"IsTruncated>\s*(?:true|false)\s*</")

_BAD_GATEWAY: Final = 502
"""What such an answer counts as: botocore repeats the request, and raises it in the end."""

_LISTED: Final = ("Key", "Size", "LastModified")
_UPLOADED: Final = ("Key", "UploadId", "Initiated")

_ASKED: Final = "snapstore-asked"

_Answer = Mapping[str, Any]
_Parameters = Mapping[str, Any]


def note_request(params: _Parameters, context: dict[str, Any], **_: object) -> None:
    """Keep what is asked, to compare the answer with. For the event ``before-parameter-build``."""
    context[_ASKED] = params


def check_answer(
    response: tuple[Any, dict[str, Any]] | None,
    operation: Any,
    request_dict: Mapping[str, Any],
    **_: object,
) -> None:
    """Make an error of an answer that S3 would never give. For botocore's event ``needs-retry``."""
    if response is None:
        return
    http, answer = response
    status = http.status_code
    endpoint = endpoint_of(request_dict["url"])
    headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    code = answer.get("Error", {}).get("Code", "")
    if 300 <= status < 400:
        if _leads_nowhere(operation.name, answer, headers):
            # Not by a status that botocore would follow, each time by asking the same anew.
            http.status_code = 400
            where = endpoint_of(headers.get("location", "nowhere"))
            _fail(answer, REDIRECTED, f"{endpoint} redirects to {where}")
        return
    if status >= 300:
        if operation.name != "HeadObject" and not from_storage(code, headers):
            if status == 404:
                http.status_code, code = _BAD_GATEWAY, FOREIGN
            _fail(answer, code, f"{endpoint} answered with {_kind(headers)}, which S3 never does")
        return
    asked = request_dict["context"][_ASKED]
    problem = _problem(operation.name, status, answer, asked, headers)
    if "IsTruncated" in answer and not _IS_TRUNCATED.search(http.content):
        problem = "no IsTruncated"  # botocore takes anything else for "false"
    if problem is not None:
        if "Body" in answer:
            answer["Body"].close()
        http.status_code = _BAD_GATEWAY
        said = f"{endpoint} answered with {_kind(headers)} and {problem}"
        _fail(answer, INCOMPLETE, f"{said}, which S3 never does")


def from_storage(code: str, headers: Mapping[str, str]) -> bool:
    """Whether an error is the storage's own: it has a code in words, or a header of S3."""
    return (bool(code) and not code.isdigit()) or any(name.startswith("x-amz") for name in headers)


def endpoint_of(url: str) -> str:
    """Return scheme, host and port of a URL, without user and password."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else url


def _fail(answer: dict[str, Any], code: str, message: str) -> None:
    """Leave nothing in an answer but that it is an error."""
    metadata = answer.get("ResponseMetadata", {})
    answer.clear()
    answer |= {"Error": {"Code": code, "Message": message}, "ResponseMetadata": metadata}


def _leads_nowhere(operation: str, answer: _Answer, headers: Mapping[str, str]) -> bool:
    """Whether a redirect is to be told: botocore asks a HEAD of the bucket where to go.

    That asks for a HEAD in turn when it is redirected. AWS names the region, or says in a document
    of its own that it redirects.
    """
    error = answer.get("Error", {})
    if "x-amz-bucket-region" in headers or "Region" in error:
        return False
    return operation == "HeadBucket" or not from_storage(error.get("Code", ""), headers)


def _kind(headers: Mapping[str, str]) -> str:
    kind = headers.get("content-type", "").partition(";")[0]
    return kind or "no content type"


def _problem(
    operation: str,
    status: int,
    answer: _Answer,
    asked: _Parameters,
    headers: Mapping[str, str],
) -> str | None:
    """Return what is wrong with an answer that says that all is well."""
    statuses, required, judge = _RULES.get(operation, _NO_RULE)
    if status not in statuses:
        return "nothing that was asked for"
    for name in required:
        if answer.get(name) in (None, ""):
            return f"no {name}"
    for name in ("Name", "Bucket"):
        if name in answer and not _is_bucket(answer[name], asked.get("Bucket", "")):
            return f"the bucket {answer[name]!r}, not {asked.get('Bucket')!r}"
    return judge(answer, asked, headers) if judge else None


def _is_bucket(told: str, asked: str) -> bool:
    """Whether a bucket is the one that was asked; access points go by other names."""
    return told == asked or asked.startswith("arn:") or asked.endswith(("-s3alias", "--ol-s3"))


def _object(answer: _Answer, asked: _Parameters, headers: Mapping[str, str]) -> str | None:
    if "text/html" in headers.get("content-type", ""):
        return "a page"
    if answer.get("ContentEncoding") not in (None, "", "identity", "aws-chunked"):
        return f"the encoding {answer['ContentEncoding']!r}"
    if answer["ContentLength"] < 0:
        return f"the length {answer['ContentLength']}"
    partial = "ContentRange" in answer
    return "a part of the object" if partial and "Range" not in asked else None


def _page(answer: _Answer, asked: _Parameters, headers: Mapping[str, str]) -> str | None:
    del headers
    prefix = asked.get("Prefix", "")
    if answer.get("Prefix", prefix) != prefix and not _is_encoded(answer, prefix):
        return f"the prefix {answer['Prefix']!r}, not {prefix!r}"
    if answer["IsTruncated"]:
        token = answer.get("NextContinuationToken")
        if not token:
            return "no token to go on with"
        if token == asked.get("ContinuationToken"):
            return "the token that it was given"
    return _entries(answer.get("Contents", ()), _LISTED)


def _is_encoded(answer: _Answer, prefix: str) -> bool:
    """Whether a prefix is the same in the URL encoding that was asked for."""
    return answer.get("EncodingType") == "url" and unquote_plus(answer["Prefix"]) == prefix


def _uploads(answer: _Answer, asked: _Parameters, headers: Mapping[str, str]) -> str | None:
    del headers
    uploads = answer.get("Uploads", ())
    if answer["IsTruncated"]:
        upload_id = answer.get("NextUploadIdMarker")
        if not upload_id or not uploads:
            return "no marker to go on with"
        if upload_id == asked.get("UploadIdMarker"):
            return "the marker that it was given"
    return _entries(uploads, _UPLOADED)


def _created(answer: _Answer, asked: _Parameters, headers: Mapping[str, str]) -> str | None:
    del headers
    return None if answer.get("Key", asked["Key"]) == asked["Key"] else f"the key {answer['Key']!r}"


def _entries(entries: Sequence[_Answer], required: Sequence[str]) -> str | None:
    for entry in entries:
        for name in required:
            if entry.get(name) is None:
                return f"an entry without {name}"
    return None


_Judge = Callable[[_Answer, _Parameters, Mapping[str, str]], str | None]

_REMOVED: Final = (200, 204)
"""S3 says 204; some servers that speak its protocol say 200."""

_NO_RULE: Final[tuple[Sequence[int], Sequence[str], _Judge | None]] = ((200, 204, 206), (), None)

_RULES: Final[Mapping[str, tuple[Sequence[int], Sequence[str], _Judge | None]]] = {
    "AbortMultipartUpload": (_REMOVED, (), None),
    "CompleteMultipartUpload": ((200,), ("ETag",), _created),
    "CreateMultipartUpload": ((200,), ("UploadId",), _created),
    "DeleteObject": (_REMOVED, (), None),
    "GetObject": ((200, 206), ("ContentLength", "ETag"), _object),
    "HeadObject": ((200,), ("ContentLength", "ETag", "LastModified"), _object),
    "ListMultipartUploads": ((200,), ("IsTruncated",), _uploads),
    "ListObjectsV2": ((200,), ("IsTruncated", "Name"), _page),
    "PutObject": ((200,), ("ETag",), None),
    "UploadPart": ((200,), ("ETag",), None),
}
"""Of each request: the statuses, what the answer must have, and what else is looked at."""
