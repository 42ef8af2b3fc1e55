"""The credentials in use: fetched, looked at before they are sent, and kept out of messages."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    MetadataRetrievalError,
    NoCredentialsError,
    PartialCredentialsError,
)
from botocore.exceptions import ConnectionError as NotConnectedError
from botocore.session import Session

from snapstore.errors import CredentialsError, SnapstoreError, StorageError
from snapstore.storages.s3.errors import explained, status_of, unreachable

if TYPE_CHECKING:
    from botocore.credentials import ReadOnlyCredentials

_ACTION: Final = "get credentials"
_SHORTEST_SECRET: Final = 4
_VARIABLES: Final = (
    ("access_key", ("AWS_ACCESS_KEY_ID",), "access key"),
    ("secret_key", ("AWS_SECRET_ACCESS_KEY",), "secret key"),
    ("token", ("AWS_SECURITY_TOKEN", "AWS_SESSION_TOKEN"), "session token"),
)
_MISSING_OR_UNREACHABLE: Final = (
    HTTPClientError,
    NoCredentialsError,
    NotConnectedError,
    PartialCredentialsError,
)
_PROVIDERS_RAISE: Final = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RuntimeError,
)
"""For a file that is not there, a program's output that is no JSON, or JSON of another form."""

_HINT: Final = (
    "check what the profile and the AWS_ variables name (a token file, a program, a role), or log "
    "in again, for instance with aws sso login"
)
_SPELLED: Final = {"\n": "a line feed", "\r": "a carriage return", "\t": "a tab", " ": "a blank"}


class Credentials:
    """What a session found in environment, profile, SSO, or where else AWS's tools look."""

    def __init__(self, session: Session) -> None:
        self._secrets: set[str] = set()
        self._checked: ReadOnlyCredentials | None = None
        with _fetched():
            self._found = session.get_credentials()
        self.current()

    def current(self) -> "ReadOnlyCredentials | None":
        """Return them, fetched anew where they run out; None where there are none.

        Raises CredentialsError where they cannot be had or sent, StorageError where the service
        that hands them out does not answer.
        """
        if self._found is None:
            return None
        with _fetched():
            frozen: ReadOnlyCredentials = self._found.get_frozen_credentials()
        if frozen != self._checked:
            self._secrets |= {
                text
                for value in (frozen.secret_key, frozen.token)
                for text in (value or "", (value or "").strip(), repr(value)[1:-1])
                if len(text) >= _SHORTEST_SECRET
            }
            self._require_plain(frozen)
            self._checked = frozen
        return frozen

    def before_sign(self, **_: object) -> None:
        """Fetch and look at them first. For botocore's event of that name."""
        self.current()

    @contextmanager
    def kept_from_errors(self) -> Iterator[None]:
        """Take secrets out of the text of whatever is raised: HTTP libraries quote headers."""
        try:
            yield
        except Exception as error:
            quoting: BaseException | None = error
            while quoting is not None:
                quoting.args = tuple(self._hidden(each) for each in quoting.args)
                if isinstance(quoting, ClientError):
                    said = quoting.response.get("Error", {})
                    said["Message"] = str(self._hidden(said.get("Message", "")))
                quoting = quoting.__cause__ or quoting.__context__
            raise

    def _hidden(self, value: object) -> object:
        if not isinstance(value, str):
            return value
        for secret in sorted(self._secrets, key=len, reverse=True):
            value = value.replace(secret, "(hidden)")
        return value

    def _require_plain(self, frozen: "ReadOnlyCredentials") -> None:
        method = getattr(self._found, "method", "")
        for field, variables, spelled in _VARIABLES:
            value = getattr(frozen, field) or ""
            wrong = _wrong_in(value)
            if wrong is not None:
                name = next((each for each in variables if os.environ.get(each) == value), None)
                told = name if name and method == "env" else f"the {spelled} from {method}"
                raise CredentialsError(
                    f"{told} {wrong}", hint="write it anew, with nothing before and after it"
                )


def _wrong_in(value: str) -> str | None:
    """Return what makes a value one that cannot be sent; never a part of it."""
    if value != value.lstrip():
        return f"begins with {_SPELLED.get(value[0], 'white space')}"
    if value != value.rstrip():
        return f"ends in {_SPELLED.get(value[-1], 'white space')}"
    if not value.isprintable():
        return "holds a control character, or one that is no character"
    return None


@contextmanager
def _fetched() -> Iterator[None]:
    """Raise an error of our tree for what a provider of credentials raises: files, JSON, network.

    Final, but for a service that does not answer.
    """
    try:
        yield
    except (
        NoCredentialsError,
        PartialCredentialsError,
        HTTPClientError,
        NotConnectedError,
    ) as error:
        raise unreachable(error, _ACTION) from error
    except ClientError as error:
        told = explained(error, _ACTION)
        if status_of(error) < 500 and not isinstance(told, CredentialsError):
            told = CredentialsError(told.message, hint=_HINT, **told.facts)
        raise told from error
    except (BotoCoreError, *_PROVIDERS_RAISE) as error:
        raise _not_fetched(error) from error


def _not_fetched(error: Exception) -> SnapstoreError:
    message = f"cannot {_ACTION}: {' '.join(str(error).split()).rstrip('.')}"
    if isinstance(error, MetadataRetrievalError | TimeoutError) or isinstance(
        error.__context__, MetadataRetrievalError
    ):
        return StorageError(message, hint="the service that hands them out does not answer")
    return unreachable(error, _ACTION, otherwise=CredentialsError(message, hint=_HINT))
