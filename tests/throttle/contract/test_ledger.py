"""The ledger as Redis holds it, and what does not balance in it."""

from typing import Any

import orjson
import pytest

from throttle.contract.cut import Cut
from throttle.contract.ledger import BatchEntry, Books, Ledger

SINCE = Cut(2_000, (0, 0), (10, 0))
UPTO = Cut(8_000, (77, 88), (20, 4))


def stored(**fields: Any) -> dict[bytes, bytes]:
    """Make the hash of a ledger that balances, with some fields changed or gone."""
    values: dict[str, Any] = {
        "since": orjson.dumps(SINCE.to_offset()).decode(),
        "upto": orjson.dumps(UPTO.to_offset()).decode(),
        "batches": 2,
        "windows": 3,
        "0:read": 10,
        "0:published": 4,
        "0:superseded": 2,
        "0:stale": 1,
        "0:refused:not_json": 2,
        "0:refused:bad_isin": 1,
        "0:log": 10,
        "1:read": 4,
        "1:published": 3,
        "1:refused:not_json": 1,
        "1:log": 4,
        "checked": 8_000,
    }
    values.update({name.replace("_", ":", 1): v for name, v in fields.items()})
    return {
        name.encode(): str(value).encode()
        for name, value in values.items()
        if value is not None
    }


def ledger(**fields: Any) -> Ledger:
    """Make a decoded ledger."""
    decoded = Ledger.decode("job", stored(**fields))
    assert decoded is not None
    return decoded


def test_a_ledger_says_what_became_of_every_trade() -> None:
    """Every field of the hash is read; a counter never raised is zero."""
    found = ledger()
    assert found.job == "job"
    assert (found.since, found.upto) == (SINCE, UPTO)
    assert (found.batches, found.windows) == (2, 3)
    assert found.partitions == (
        Books(10, 4, 2, 1, {"not_json": 2, "bad_isin": 1}),
        Books(4, 3, 0, 0, {"not_json": 1}),
    )
    assert found.log == (10, 4)
    assert found.checked_ms == 8_000
    assert found.total == Books(14, 7, 2, 1, {"bad_isin": 1, "not_json": 3})
    assert found.refusal_reasons == ("bad_isin", "not_json")


def test_blanks_are_in_the_books_and_no_trades() -> None:
    """What the log counts is without them already."""
    found = ledger(**{"0_blanks": 7})
    assert [books.blanks for books in found.partitions] == [7, 0]
    assert found.total.blanks == 7
    assert found.total.accounted == found.total.read
    assert found.problems() == []


def test_a_ledger_of_some_partitions_has_their_books() -> None:
    """By their numbers: partition 1 is not the first two of 12."""
    upto = Cut(8_000, (77, 88), (20, 4), (1, 12))
    offset = orjson.dumps(upto.to_offset()).decode()
    fields = {"upto": offset, "12_read": 3, "12_stale": 3, "12_log": 5, "1_log": 4}
    found = ledger(**{**fields, "12_refused:not_json": 0})
    assert found.upto == upto
    assert found.partitions == (
        Books(4, 3, 0, 0, {"not_json": 1}),
        Books(3, 0, 0, 3, {"not_json": 0}),
    )
    assert found.log == (4, 5)
    [problem] = found.problems()
    assert problem.startswith("partition 12: the log counted 5 trades")


def test_a_partition_that_was_added_has_books_from_then_on() -> None:
    """The ledger's partitions are those it has come to."""
    found = ledger(since=orjson.dumps(Cut(2_000, (0,), (10,)).to_offset()).decode())
    assert (found.since.partitions, found.upto.partitions) == ((0,), (0, 1))
    assert len(found.partitions) == len(found.log) == 2
    assert found.problems() == []


def test_no_ledger_yet_is_none() -> None:
    """A job that published nothing has no books, not empty ones."""
    assert Ledger.decode("job", {}) is None


@pytest.mark.parametrize("name", ["0_read", "0_published", "1_refused:not_json"])
def test_a_trade_without_a_fate_is_a_problem(name: str) -> None:
    """Read is published, superseded, stale or refused: nothing else."""
    problems = ledger(**{name: 9}).problems()
    assert f"partition {name[0]}: " in problems[0]
    assert "accounted for" in problems[0]


@pytest.mark.parametrize("counted", [11, 9])
def test_a_count_of_the_log_that_differs_is_a_problem(counted: int) -> None:
    """A trade that is in the log and was not read, or the other way round."""
    assert ledger(**{"0_log": counted}).problems() == [
        f"partition 0: the log counted {counted} trades up to the window 8000, "
        "10 were read up to 8000"
    ]


def test_a_count_of_an_older_window_may_be_smaller_but_not_greater() -> None:
    """What was read since then is not in it."""
    assert ledger(checked=6_000, **{"0_log": 9}).problems() == []
    assert len(ledger(checked=6_000, **{"0_log": 11}).problems()) == 1


def test_a_log_that_did_not_count_is_not_compared() -> None:
    """Unknown is not zero."""
    unasked = ledger(checked=None, **{"0_log": None, "1_log": None})
    assert unasked.log == (None, None)
    assert unasked.checked_ms is None
    assert unasked.problems() == []


@pytest.mark.parametrize(
    "broken",
    [
        {"since": None},
        {"batches": None},
        {"upto": "[]"},
        {"upto": "not JSON"},
        {"0_read": "x"},
    ],
)
def test_a_ledger_nobody_would_have_written_is_refused(broken: dict[str, Any]) -> None:
    """Guessed books are worse than none."""
    with pytest.raises(ValueError, match=r"ledger of job|invalid literal|unexpected"):
        Ledger.decode("job", stored(**broken))


def books(*partitions: dict[str, Any]) -> str:
    """Make the books of a batch's entry from what is not nothing."""
    return orjson.dumps([Books().to_object() | some for some in partitions]).decode()


def batch_fields(**changed: Any) -> dict[bytes, bytes]:
    """Make the fields of one batch's entry."""
    values = {
        "batch": 7,
        "term": 3,
        "start": orjson.dumps(SINCE.to_offset()).decode(),
        "end": orjson.dumps(UPTO.to_offset()).decode(),
        "windows": 3,
        "books": books(
            {"read": 3, "published": 1, "superseded": 1, "refused": {"not_json": 1}},
            {"read": 1, "stale": 1},
        ),
    }
    values.update(changed)
    return {name.encode(): str(v).encode() for name, v in values.items() if v}


def test_a_batch_says_its_cuts_and_its_books() -> None:
    """A window can be traced to the entries it was made of."""
    found = BatchEntry.decode(b"15-0", batch_fields())
    assert found == BatchEntry(
        offset=15,
        batch=7,
        term=3,
        start=SINCE,
        end=UPTO,
        windows=3,
        partitions=(Books(3, 1, 1, 0, {"not_json": 1}), Books(1, 0, 0, 1, {})),
    )
    assert found.total == Books(4, 1, 1, 1, {"not_json": 1})
    assert found.total.accounted == found.total.read


def test_a_batch_of_some_partitions_has_their_blanks() -> None:
    """In the order of its end's partitions."""
    end = Cut(8_000, (77, 88), (20, 4), (3, 11))
    found = BatchEntry.decode(
        b"15-0",
        batch_fields(
            end=orjson.dumps(end.to_offset()).decode(),
            books=books({"read": 1, "blanks": 4}, {"read": 2, "blanks": 5}),
        ),
    )
    assert found.end.partitions == (3, 11)
    assert found.partitions == (Books(1, blanks=4), Books(2, blanks=5))
    assert found.total == Books(3, blanks=9)


def test_an_empty_list_of_refusals_is_no_refusals() -> None:
    """Lua cannot tell an empty list from an empty object."""
    fields = batch_fields(books=books({"refused": []}))
    assert BatchEntry.decode(b"1-0", fields).total == Books()


def test_books_of_a_version_before_lack_what_was_added_since() -> None:
    """While versions change, a new gateway reads what an old job wrote."""
    fields = batch_fields(books='[{"read":2,"published":2,"refused":{}}]')
    assert BatchEntry.decode(b"1-0", fields).total == Books(2, published=2)


@pytest.mark.parametrize(
    "broken", [{"start": None}, {"books": "[{}]"}, {"books": "[7]"}, {"end": "[]"}]
)
def test_a_batch_nobody_would_have_written_is_refused(broken: dict[str, Any]) -> None:
    """The entry is named."""
    with pytest.raises(ValueError, match="batch b'15-0'"):
        BatchEntry.decode(b"15-0", batch_fields(**broken))
