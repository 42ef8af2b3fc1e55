"""Read a configuration file: YAML with everything that surprises refused."""

from pathlib import Path

from snapstore.errors import ConfigError

MAX_BYTES = 1 << 20
MAX_DEPTH = 16


def read_file(path: Path) -> dict[str, object]:
    """Return the mapping that the file holds; an empty file is an empty mapping.

    Raises ConfigError for a file that cannot be read, is no YAML mapping of text keys, names a key
    twice, or uses aliases or deep nesting.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as exc:
        raise ConfigError(f"cannot read {path}: {exc.strerror}", path=str(path)) from exc
    if len(content) > MAX_BYTES:
        raise ConfigError(f"{path} is larger than a configuration file can be", path=str(path))
    document = _parse(content, path)
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(
            f"{path} holds no mapping",
            hint="a configuration file begins with a section such as `repository:`",
            path=str(path),
        )
    return document


def _parse(content: bytes, path: Path) -> object:
    import yaml

    class Loader(yaml.SafeLoader):
        """SafeLoader in which a key is a text and occurs once."""

    def mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[str, object]:
        result: dict[str, object] = {}
        for key_node, value_node in node.value:
            key = loader.construct_object(key_node, deep=True)
            line = key_node.start_mark.line
            if not isinstance(key, str):
                raise _bad(path, line, f"the key {key!r} is not a text")
            if key in result:
                raise _bad(path, line, f"the key {key!r} is there twice")
            result[key] = loader.construct_object(value_node, deep=True)
        return result

    Loader.add_constructor("tag:yaml.org,2002:map", mapping)
    try:
        depth = 0
        for event in yaml.parse(content, Loader=yaml.SafeLoader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            line = event.start_mark.line if event.start_mark else 0
            if depth > MAX_DEPTH:
                raise _bad(path, line, f"nested more than {MAX_DEPTH} deep")
            if isinstance(event, yaml.AliasEvent):
                raise _bad(path, line, "aliases are not supported")
        return yaml.load(content, Loader=Loader)
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line if exc.problem_mark else 0
        raise _bad(path, line, exc.problem or "not YAML") from exc
    except (yaml.YAMLError, ValueError) as exc:
        raise ConfigError(f"{path}: {str(exc).splitlines()[0]}", path=str(path)) from exc


def _bad(path: Path, line: int, problem: str) -> ConfigError:
    return ConfigError(f"{path}, line {line + 1}: {problem}", path=str(path))
