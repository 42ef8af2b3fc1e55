"""Plug-ins: found by name, loaded late, and a broken one harms nobody else."""

import sys
from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint
from pathlib import Path

import msgspec
import pytest

from snapstore.errors import ConfigError, PluginError
from snapstore.model.repository_url import url_scheme
from snapstore.registry import BUILT_IN, Registry

PLUGIN = """
import msgspec

class Folders:
    name = "folders"

    class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
        depth: int = 1

    def __init__(self, options):
        self.options = options

not_a_class = 1
"""


class Distribution:
    """As much of a distribution as names its entry points."""

    def __init__(self, name: str, version: str) -> None:
        self.name = name
        self.version = version


def point(name: str, value: str, group: str, owner: str) -> EntryPoint:
    made = EntryPoint(name=name, value=value, group=group)
    vars(made)["dist"] = Distribution(owner, "2.1")
    return made


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "a_foreign_plugin.py").write_text(PLUGIN)
    (tmp_path / "a_broken_plugin.py").write_text("raise RuntimeError('no licence')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "a_foreign_plugin", raising=False)
    return "a_foreign_plugin"


def finder(*points: EntryPoint) -> Callable[[str], Iterable[EntryPoint]]:
    return lambda group: [one for one in points if one.group == group]


def test_every_built_in_plugin_loads() -> None:
    broken = [plugin for plugin in Registry().plugins() if plugin.error]
    assert broken == []


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, table in BUILT_IN.items() for name in table]
)
def test_every_built_in_plugin_has_strict_frozen_options(kind: str, name: str) -> None:
    options = Registry().options_type(kind, name)  # type: ignore[arg-type]
    assert issubclass(options, msgspec.Struct)
    assert options.__struct_config__.frozen


def test_built_in_names_are_found_without_looking_at_other_distributions() -> None:
    def forbidden(group: str) -> list[EntryPoint]:
        raise AssertionError(f"scanned {group}")

    Registry(forbidden).options_type("layouts", "kafka-streams")


def test_an_unknown_name_is_answered_with_near_ones() -> None:
    with pytest.raises(PluginError) as caught:
        Registry(finder()).layout("kafka-stream", {})
    assert caught.value.hint == "did you mean kafka-streams?"


def test_an_unknown_scheme_is_answered_with_the_known_ones() -> None:
    with pytest.raises(PluginError) as caught:
        Registry(finder()).storage("webdav://host/x", {})
    assert caught.value.hint == "known: file, s3"


def test_a_foreign_plugin_gets_its_options(module: str) -> None:
    registry = Registry(finder(point("folders", f"{module}:Folders", "snapstore.layouts", "acme")))
    layout = registry.layout("folders", {"depth": 3})
    assert layout.name == "folders"
    assert layout.options.depth == 3  # type: ignore[attr-defined]


def test_a_typo_in_the_options_of_a_plugin_is_reported_as_ours_are(module: str) -> None:
    registry = Registry(finder(point("folders", f"{module}:Folders", "snapstore.layouts", "acme")))
    with pytest.raises(ConfigError) as caught:
        registry.layout("folders", {"dept": 3})
    assert caught.value.message == "layout folders.dept: unknown key"
    assert caught.value.hint == "did you mean depth?"


def test_a_name_taken_twice_names_both_distributions(module: str) -> None:
    registry = Registry(
        finder(
            point("folders", f"{module}:Folders", "snapstore.layouts", "acme"),
            point("folders", f"{module}:Folders", "snapstore.layouts", "ajax"),
        )
    )
    with pytest.raises(PluginError, match=r"acme 2\.1 and ajax 2\.1"):
        registry.layout("folders", {})


def test_a_built_in_name_cannot_be_taken(module: str) -> None:
    registry = Registry(finder(point("plain", f"{module}:Folders", "snapstore.layouts", "acme")))
    assert registry.layout("plain", {}).name == "plain"
    [plain] = [one for one in registry.plugins() if one.name == "plain"]
    assert plain.origin == "built in"
    assert plain.error is not None
    assert "acme 2.1" in plain.error


def test_a_broken_plugin_keeps_its_cause_and_the_others_go_on(module: str) -> None:
    registry = Registry(
        finder(
            point("bad", "a_broken_plugin:X", "snapstore.layouts", "ajax"),
            point("folders", f"{module}:Folders", "snapstore.layouts", "acme"),
            point("odd", f"{module}:not_a_class", "snapstore.layouts", "acme"),
        )
    )
    with pytest.raises(PluginError, match="no licence") as caught:
        registry.layout("bad", {})
    assert isinstance(caught.value.__cause__, RuntimeError)
    errors = {plugin.name: plugin.error for plugin in registry.plugins()}
    assert "no licence" in str(errors["bad"])
    assert "is no class" in str(errors["odd"])
    assert errors["folders"] is None
    assert errors["plain"] is None


@pytest.mark.parametrize(
    ("url", "scheme"),
    [
        ("s3://bucket/prefix", "s3"),
        ("S3://bucket", "s3"),
        ("file:///srv/x", "file"),
        ("/srv/x", "file"),
        ("relative/x", "file"),
        ("C:thing", "file"),
    ],
)
def test_the_scheme_of_a_url_decides(url: str, scheme: str) -> None:
    assert url_scheme(url) == scheme


def test_an_empty_url_is_refused() -> None:
    with pytest.raises(ConfigError, match="empty"):
        url_scheme(" ")


@pytest.mark.parametrize(("version", "loads"), [(1, True), (2, False), (0, False)])
def test_h48_a_plugin_for_another_version_of_the_ports_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, loads: bool
) -> None:
    name = f"plugin_of_version_{version}"
    source = PLUGIN.replace('    name = "folders"\n', f"    ports_version = {version}\n")
    (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, name, raising=False)
    registry = Registry(finder(point("folders", f"{name}:Folders", "snapstore.layouts", "theirs")))
    if loads:
        registry.layout("folders", {})
        return
    with pytest.raises(PluginError, match=f"version {version} of snapstore.ports, and this is 1"):
        registry.layout("folders", {})
