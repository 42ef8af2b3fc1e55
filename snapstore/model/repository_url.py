"""What the URL of a repository says of the storage that it is in."""

from snapstore.errors import ConfigError


def url_scheme(url: str) -> str:
    """Return the scheme of a repository URL in lower case; ``file`` for a path.

    Raises ConfigError for an empty one.
    """
    if not url.strip():
        raise ConfigError("the URL of the repository is empty", key="repository.url")
    scheme, separator, _ = url.partition("://")
    return scheme.lower() if separator else "file"


def keeps_options(url: str, former_url: object) -> bool:
    """Whether the options written for one repository are meant for another that takes its place.

    Those of another kind of storage are not: a folder has no endpoint.
    """
    if not isinstance(former_url, str) or not former_url.strip() or not url.strip():
        return True
    return url_scheme(url) == url_scheme(former_url)
