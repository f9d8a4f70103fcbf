"""The records of a frame of KIS: fields in a row, only the first are known. Pure.

A record had 46 fields, and has 47 since 2026-09-14; the next one may come any day. So
the length is taken from the frame: its fields shared out among the records that it
announces. Each record has to begin with a code that was asked for and a time of day.
Where that does not hold, records are looked for by these beginnings, so that a broken
one costs itself alone.
"""

from collections.abc import Sequence, Set

Record = Sequence[str]

FIELDS = 46
"""Fewest fields of a record."""

KNOWN_LENGTHS = (FIELDS, FIELDS + 1)
MOST_RECORDS = 999
"""Most records of a frame: their number is announced in three digits."""

_DATE = 33


def split_records(
    values: Sequence[str], announced: str, asked: Set[str]
) -> tuple[list[Record], int]:
    """Return the records of a frame, and how many that it announces are not there.

    A record that was found by its beginning may have any number of fields.
    """
    count = int(announced) if _is_digits(announced, len(announced)) else 0
    count = min(count, MOST_RECORDS)
    even = _share_out(values, count)
    begun = sum(_begins(record, 0, asked) for record in even)
    if even and begun == len(even) and len(even[0]) in KNOWN_LENGTHS:
        return even, 0
    by_beginning = _look_for(values, asked)
    if even and begun >= len(by_beginning):
        return even, 0
    if not by_beginning:
        # Nothing can be told apart: as many are lost as were announced.
        return [], max(count, 1)
    return by_beginning, max(count - len(by_beginning), 0)


def _share_out(values: Sequence[str], count: int) -> list[Record]:
    if not count or len(values) % count or len(values) // count < FIELDS:
        return []
    length = len(values) // count
    return [values[at : at + length] for at in range(0, len(values), length)]


def _look_for(values: Sequence[str], asked: Set[str]) -> list[Record]:
    """Return what stands between one beginning and the next; the first is at 0."""
    starts = [at for at in range(1, len(values)) if _begins(values, at, asked)]
    if not starts and not _begins(values, 0, asked):
        return []
    ends = [*starts, len(values)]
    return [values[at:end] for at, end in zip([0, *starts], ends, strict=True)]


def _begins(values: Sequence[str], at: int, asked: Set[str]) -> bool:
    """Tell whether a record begins there: a code, a time of day, its date further on.

    A number in a record may look like a code by chance; it has no date behind it.
    """
    return (
        values[at] in asked
        and at + _DATE < len(values)
        and _is_digits(values[at + 1], 6)
        and _is_digits(values[at + _DATE], 8)
    )


def _is_digits(text: str, count: int) -> bool:
    return len(text) == count and text.isascii() and text.isdigit()
