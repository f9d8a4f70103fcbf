"""The books of the analytics job."""

import pytest

from throttle.contract.cut import Cut
from throttle.contract.tally import BatchNote, QueryTally, TallyBook, join_notes


def make_note(start_ms: int, end_ms: int, **tallies: QueryTally) -> BatchNote:
    """Make a note of what was read of partitions p0, p1 and so on."""
    by_number = {int(name[1:]): tally for name, tally in tallies.items()}
    return BatchNote(Cut(start_ms, (0,), (0,)), Cut(end_ms, (5,), (5,)), by_number)


def make_tally(read: int = 3, counted: int = 2) -> QueryTally:
    """Make a tally that balances: what is not counted was refused."""
    tally = QueryTally(read=read, counted=counted)
    tally.refused["not_json"] = read - counted
    return tally


def test_what_is_read_is_accounted_for() -> None:
    """An entry of several trades has extra ones; one that is none was skipped."""
    tally = make_tally()
    assert tally.unaccounted == 0
    tally.extra += 2
    assert tally.unaccounted == 2
    tally.too_late += 1
    tally.skipped["status"] += 1
    assert tally.unaccounted == 0


def test_a_note_survives_spark() -> None:
    """It goes through the state as text."""
    note = make_note(0, 10, p0=make_tally(), p1=QueryTally())
    assert BatchNote.decode(note.encode()) == note


def test_notes_of_tasks_and_batches_are_joined() -> None:
    """From the first cut to the last, with everything in between."""
    notes = [
        make_note(10, 20, p0=make_tally()),
        make_note(0, 10, p0=make_tally(5, 5)),
        make_note(0, 10, p1=make_tally()),
    ]
    joined = join_notes(notes)
    assert (joined.start.end_ms, joined.end.end_ms) == (0, 20)
    assert (joined.tallies[0].read, joined.tallies[1].read) == (8, 3)


@pytest.mark.parametrize("spans", [[], [(0, 10), (20, 30)], [(0, 10), (5, 15)]])
def test_notes_that_do_not_follow_one_another_are_refused(
    spans: list[tuple[int, int]],
) -> None:
    """A hole would be trades that no book has."""
    with pytest.raises(ValueError, match="do not fit together"):
        join_notes([make_note(*span) for span in spans])


def test_books_are_read_as_they_are_stored() -> None:
    """An imbalance is said in a sentence, by partition."""
    cut = b'{"end_ms":10,"p0":5,"n0":5}'
    stored = {
        b"since": cut,
        b"upto": cut,
        b"batches": b"2",
        b"0:read": b"7",
        b"0:counted": b"5",
        b"0:refused:bad_isin": b"1",
    }
    assert TallyBook.decode("bars", {}) is None
    book = TallyBook.decode("bars", stored)
    assert book is not None
    assert book.partitions[0].refused == {"bad_isin": 1}
    assert book.problems() == [
        "partition 0: 7 trades were read, 1 are not accounted for"
    ]


@pytest.mark.parametrize(
    "stored", [{b"0:read": b"x"}, {b"0:read": b"1"}, {b"0:odd": b"1"}]
)
def test_foreign_books_are_a_value_error(stored: dict[bytes, bytes]) -> None:
    """There is one kind of error."""
    with pytest.raises(ValueError):  # noqa: PT011 - the contract is the type
        TallyBook.decode("bars", stored)
