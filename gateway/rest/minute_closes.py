"""Trends: each instrument's closes of the newest whole minutes. Pure.

A minute is named by its end, as a window is. Its close is the price of the newest
window that ends in it. Only whole minutes are told, so an answer holds for a minute.
"""

from collections.abc import Iterator, Mapping, Sequence

STEP_MS = 60_000

MOST_CLOSES = 30
"""Of an instrument: half an hour."""


def newest_minutes(since_ms: int | None, upto_ms: int) -> tuple[int, int]:
    """Return the ends of the first and last minute that all windows are known of.

    ``since_ms`` and ``upto_ms`` are the ends of the oldest and newest known window. The
    first is greater than the last where there is no such minute.
    """
    last = upto_ms // STEP_MS * STEP_MS
    oldest = last - (MOST_CLOSES - 1) * STEP_MS
    if since_ms is None:
        return last + STEP_MS, last
    # Of the minute in which the oldest window ends others may be forgotten.
    return max(oldest, -(-since_ms // STEP_MS) * STEP_MS + STEP_MS), last


def trend_objects(
    isins: Iterator[str], minutes: Sequence[Mapping[str, bytes]]
) -> Iterator[bytes]:
    """Yield the trend of each instrument that has one, as clients get it.

    ``minutes`` are the closes by instrument, the oldest minute first. A trend ends with
    the last minute and begins with the instrument's first close.
    """
    for isin in isins:
        closes = [minute.get(isin, b"null") for minute in minutes]
        first = next((at for at, close in enumerate(closes) if close != b"null"), None)
        if first is not None:
            told = b",".join(closes[first:])
            yield b'{"isin":"%b","closes":[%b]}' % (isin.encode(), told)


def trends_object(last_ms: int | None, bodies: Sequence[bytes], left_out: int) -> bytes:
    """Encode an answer for clients; without a minute ``last_ms`` is None."""
    end = b"null" if last_ms is None else b"%d" % last_ms
    head = b'{"end":%b,"step":%d,"count":%d,"left_out":%d' % (
        *(end, STEP_MS, len(bodies), left_out),
    )
    return b'%b,"data":[%b]}' % (head, b",".join(bodies))
