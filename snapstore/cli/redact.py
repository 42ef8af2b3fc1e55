"""Keep secrets out of everything that is printed."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from snapstore.config import Config

_SECRET_VARIABLES = (
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SECURITY_TOKEN",
    "AWS_SESSION_TOKEN",
)
_SHORTEST = 4


class Redactor:
    """Replaces the secrets it was told about, and credentials inside URLs."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._secrets: set[str] = set()
        self._add(env.get(name, "") for name in _SECRET_VARIABLES)

    def learn(self, config: "Config") -> None:
        """Hide from now on every secret that the configuration holds."""
        from snapstore.config.show import secret_values

        self._add(secret_values(config))

    def __call__(self, text: str) -> str:
        # Imported here: help and version print without it.
        from snapstore.config.secrets import HIDDEN, without_userinfo

        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, HIDDEN)
        return without_userinfo(text)

    def _add(self, secrets: Iterable[str]) -> None:
        for secret in secrets:
            # Text that quotes it may spell what is around it, or in it, in another way.
            spellings = {secret, secret.strip(), repr(secret)[1:-1], repr(secret.strip())[1:-1]}
            self._secrets |= {each for each in spellings if len(each) >= _SHORTEST}
