"""The state directories that come with the tests are what their descriptions say."""

from pathlib import Path

import pytest

from tests.support.fixtures import FIXTURES, FixtureName, expected, unpack


@pytest.mark.parametrize("name", FIXTURES)
def test_a_fixture_holds_the_databases_that_its_description_names(
    name: FixtureName, tmp_path: Path
) -> None:
    application = unpack(name, tmp_path)
    databases = {str(c.parent.relative_to(application)) for c in application.rglob("CURRENT")}
    description = expected(name)
    assert databases == set(description.rocksdb)
    checkpoints = {str(c.relative_to(application)) for c in application.rglob(".checkpoint")}
    assert checkpoints == set(description.checkpoint_files)
    assert set(description.dump) >= {"plain", "table", "window", "session", "versioned"}
