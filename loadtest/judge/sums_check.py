"""Whether items say what was traded by the published rows that they stand for. Pure.

An item of so many trades stands for the newest rows up to its own that have so many
together, however many windows were merged. Where several jobs publish, its price may
be of a row that is held back for the next window: then it stands for those before it.
That none is left out or comes twice is not said here: the trades of a client's items
add up (``judging.py``).
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from loadtest.judge.reference import Reference
from throttle.contract.group import units
from throttle.contract.row_sums import Amounts, RowSums

# A double would lose digits.
_AS_TEXT = json.JSONDecoder(parse_float=str, parse_int=str)


def wrong_sums(
    rows: Iterable[bytes], reference: Reference, *, has_holes: bool
) -> Iterator[str]:
    """Say which rows, as clients got them, say other sums than were published.

    Of rows after a hole, whose trades nobody has counted, sums may be missing.
    """
    for row in rows:
        item = _AS_TEXT.decode(row.decode())
        if has_holes and "volume" not in item:
            continue
        try:
            sums = sums_of(item)
        except (KeyError, ValueError, AttributeError) as error:
            yield f"sums not as the protocol says, {error!r}: {row!r:.200}"
            continue
        version = int(item["time"]), int(item["seq"])
        published = other_sums(reference, item["isin"], version, sums)
        if published:
            shown = " or ".join(each.encode().decode() for each in published)
            yield (
                f"{item['isin']} of seq {item['seq']} stands for "
                f"{sums.encode().decode()}, published was {shown}"
            )


def sums_of(item: dict[str, Any]) -> RowSums:
    """Return the sums of an item whose numbers are text."""
    trades = int(item["trades"])
    if "volume" in item:
        sums = units(item["volume"]), units(item["value"])
        extremes = (item.get(name) for name in ("high", "low"))
        high, low = (None if text is None else units(text) for text in extremes)
        return RowSums(trades, Amounts(*sums, high, low))
    own = RowSums(1, Amounts.of_trade(item["price"], item["size"]))
    return own if trades == 1 else RowSums(trades)


def other_sums(
    reference: Reference, isin: str, version: tuple[int, int], sums: RowSums
) -> list[RowSums]:
    """Return what an item has to say; nothing if it does, or if nobody knows.

    Rows of late trades have the version of the row before, so it may be several. Of an
    item whose first rows came before the reference begins, nobody knows.
    """
    changes, found = reference.changes(isin), []
    places = [
        place
        for own in changes.places(version)
        for place in reference.in_window(changes, own)
    ]
    for place in places:
        published = changes.newest(place, sums.trades)
        if published is None or published.amounts is None or published == sums:
            return []
        found.append(published)
    return found
