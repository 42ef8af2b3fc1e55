"""A botocore session that reads the environment as AWS's newer tools do, and starts quickly."""

import os
from collections.abc import Callable
from typing import IO, Any, Final

import msgspec
from botocore.config import Config
from botocore.loaders import JSONFileLoader, Loader
from botocore.session import Session

from snapstore.storages.s3.options import S3Options
from snapstore.storages.s3.patience import Patience
from snapstore.storages.s3.times import parse_time

_SERVICES: Final = ("s3", "signin", "sso", "sso-oidc", "sts")
_ENDPOINTS: Final = ("s3", "signin", "portal.sso", "oidc", "sts")
"""The same, as the list of endpoints calls them."""

_VARIABLES: Final = {
    "profile": (None, ("AWS_DEFAULT_PROFILE", "AWS_PROFILE")),
    "region": ("region", ("AWS_REGION", "AWS_DEFAULT_REGION")),
    "ca_bundle": ("ca_bundle", ("AWS_CA_BUNDLE",)),
}
"""By botocore's name for it: the key in a profile, and the variables, the first of them first."""


class _FastFiles(JSONFileLoader):
    """Decodes botocore's models four times as fast as botocore does, which shows at every start.

    Where the endpoints of the other services are is forgotten: they take 3 MB.
    """

    def _load_file(self, full_path: str, open_method: Callable[..., IO[bytes]]) -> Any:
        try:
            with open_method(full_path, "rb") as file:
                model = msgspec.json.decode(file.read())
        except FileNotFoundError:
            return None
        for partition in model.get("partitions", ()):
            if "services" in partition:
                services = partition["services"]
                partition["services"] = {
                    name: services[name] for name in _ENDPOINTS if name in services
                }
        return model


class _ServiceLoader(Loader):
    """Reads the models of the few services in use.

    botocore looks through the folders of all its 400 services otherwise, twice, which takes a third
    of the time of making a client.
    """

    FILE_LOADER_CLASS = _FastFiles

    def list_available_services(self, type_name: str) -> list[str]:
        del type_name  # each of them has a model, rules and pages
        return [*_SERVICES]


def new_session(options: S3Options, patience: Patience) -> Session:
    """Return a session; a variable that is set to nothing counts as not set.

    ``patience`` watches over all its requests, those for credentials too.
    """
    session = Session(
        profile=options.profile,
        session_vars={
            name: (key, [each for each in variables if os.environ.get(each)], None, None)
            for name, (key, variables) in _VARIABLES.items()
        },
    )
    # Without a region botocore cannot sign; servers of one's own mostly ignore it.
    region = options.region or session.get_config_variable("region") or "us-east-1"
    session.set_config_variable("region", region)
    session.register_component("data_loader", _ServiceLoader())
    session.get_component("response_parser_factory").set_parser_defaults(
        timestamp_parser=parse_time
    )
    session.get_component("event_emitter").register("needs-retry", patience.after_attempt)
    session.set_default_client_config(Config(**request_settings(options)))
    return session


def request_settings(options: S3Options) -> dict[str, Any]:
    """Return how botocore sends any request: time-outs and attempts."""
    return {
        "retries": {"mode": "standard", "total_max_attempts": options.max_attempts},
        "connect_timeout": min(options.connect_timeout, options.give_up_after).total_seconds(),
        "read_timeout": min(options.read_timeout, options.give_up_after).total_seconds(),
    }
