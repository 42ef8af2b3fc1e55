"""What holds for several stores is said once, and no store is left out."""

from snapstore.cli.narrow import wrapped
from snapstore.cli.sentences import complaints, named, told
from snapstore.errors import UnknownOffsetError
from snapstore.model.identity import StoreId

A, B, C = (StoreId("orders", task, "counts") for task in ("0_0", "0_1", "0_2"))


def test_one_sentence_on_several_stores_is_said_once_with_their_names() -> None:
    said = told([(A, f"the files of {A} are old"), (B, f"the files of {B} are old"), (C, "is new")])
    assert said == [
        "2 stores: the files of each are old\n  orders/0_0/counts, orders/0_1/counts",
        "orders/0_2/counts: is new",
    ]


def test_a_sentence_on_one_store_names_it_once() -> None:
    assert told([(A, f"{A} is old")]) == ["orders/0_0/counts is old"]
    assert told([(A, "is old"), (A, "is old")]) == ["orders/0_0/counts: is old"]


def test_a_hint_is_given_once_however_many_stores_have_it() -> None:
    errors = [(each, UnknownOffsetError(f"{each} is open", hint="close it")) for each in (A, B)]
    assert complaints(errors) == [
        "2 stores: each is open\n  orders/0_0/counts, orders/0_1/counts",
        "  hint: close it",
    ]


def test_a_name_cannot_drive_the_terminal() -> None:
    odd = StoreId("orders", "0_0", "a\x1b[2Jb")
    assert "\x1b" not in "".join([*told([(odd, "is old")]), named([odd, A])])


def test_all_names_are_on_one_line_that_only_a_terminal_breaks() -> None:
    stores = [StoreId("orders", f"0_{number}", "counts") for number in range(40)]
    assert named(stores) == "  " + ", ".join(map(str, stores))
    assert max(map(len, wrapped(named(stores), 80))) <= 80
