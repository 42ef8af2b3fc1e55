"""An application may move, remove and make its folders at any moment."""

from pathlib import Path

from snapstore.layouts.kafka_streams import KafkaStreamsLayout
from tests.support.fixtures import unpack
from tests.support.restless import restless


def test_whether_it_runs_is_told_although_a_store_comes_and_goes(tmp_path: Path) -> None:
    application = unpack("ks440-alos", tmp_path)
    layout = KafkaStreamsLayout()
    found = layout.discover(tmp_path).locations
    (store,) = [one for one in found if (one.store.task, one.store.store) == ("0_0", "window")]
    with restless(application / "0_0" / "window"):
        for _ in range(5):
            assert layout.which_in_use([store] * 1000) == ()
