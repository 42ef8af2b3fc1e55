"""The storage of docs/write-your-own-storage.md keeps the contract, and holds a repository."""

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from snapstore.repository import Repository
from snapstore.testing.storage_contract import OpenStorage, StorageContract
from tests.support.repository import NOON, describe, publish

PAGE = Path(__file__).parents[2] / "docs" / "write-your-own-storage.md"


def shelf() -> Any:
    """Run the first piece of Python on the page."""
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert code is not None
    module = ModuleType("shelf")
    exec(compile(code[1], str(PAGE), "exec"), module.__dict__)
    return module


class TestShelf(StorageContract):
    @pytest.fixture
    def open_storage(self, tmp_path: Path) -> OpenStorage:
        module = shelf()
        return lambda: module.ShelfStorage(f"shelf://{tmp_path}")


def test_h48_a_repository_lives_in_it() -> None:
    module = shelf()
    repository = Repository.create(module.ShelfStorage("shelf://a"), created_at=NOON)
    listed = publish(repository, describe())
    again = Repository.open(module.ShelfStorage("shelf://a"))
    assert again.catalog.list_all().snapshots == (listed,)
