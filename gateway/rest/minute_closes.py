"""Trends: each instrument's closes of the newest whole minutes. Pure.

A minute is named by its end, as a window is. Its close is the price of the newest
window that ends in it. Only whole minutes are told, so an answer holds for a minute.
"""

from collections.abc import Iterator, Mapping, Sequence

STEP_MS = 60_000

MOST_CLOSES = 30


def newest_minutes(since_ms: int | None, upto_ms: int) -> tuple[int, int]:
    """Return the ends of the first and last whole minute known; none: first > last."""
    last = upto_ms // STEP_MS * STEP_MS
    oldest = last - (MOST_CLOSES - 1) * STEP_MS
    if since_ms is None:
        return last + STEP_MS, last
    # Of the minute in which the oldest window ends others may be forgotten.
    return max(oldest, -(-since_ms // STEP_MS) * STEP_MS + STEP_MS), last


def trend_objects(
    isins: Iterator[str], minutes: Sequence[Mapping[str, bytes]]
) -> Iterator[bytes]:
    """Yield trends of ``minutes``, each from its first close to the last minute."""
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
