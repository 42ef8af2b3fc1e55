"""Many notes of one kind are a few lines and a count."""

from snapstore.cli.folding import Folded
from snapstore.cli.reporter import Reporter
from snapstore.model.report import Noted


def test_h42_five_hundred_notes_of_one_kind_are_three_and_a_count() -> None:
    told: list[str] = []
    folded = Folded(told.append)
    for number in range(500):
        folded.tell(f"orders/0_{number}/counts: 12 records behind")
        folded.tell(f"orders/0_{number}/counts: 12 records behind")
    folded.tell("something else")
    folded.end()
    assert told[:3] == [f"orders/0_{number}/counts: 12 records behind" for number in range(3)]
    assert told[3:] == [
        "something else",
        "497 more like this (all with --json): orders/0_0/counts: 12 records behind",
    ]


def test_h42_what_a_run_notes_is_kept_whole_for_json() -> None:
    reporter = Reporter(str)
    with reporter:
        for number in range(20):
            reporter(Noted(message=f"app/0_{number}/s: again"))
    assert len(reporter.notes) == 20
