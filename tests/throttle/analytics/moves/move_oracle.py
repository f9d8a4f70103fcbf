"""What moves have to be: plain Python over every trade, no code of the job.

The rules are those of docs/bars.md, written a second time. Slow, and meant to be.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import redis

from ingest.redis_keys import AnalyticsKeys
from tests.throttle.analytics.bar_oracle import Entry
from throttle.contract.products.moves import Move


class MoveFound(NamedTuple):
    """A move as clients get it, but for its rate."""

    isin: str
    start_us: int
    end_us: int
    seq: int
    before: Fraction
    after: Fraction


@dataclass(frozen=True)
class MoveRules:
    """What the job was told."""

    percent: Fraction = Fraction(3)
    span_us: int = 10_000_000
    batch_ms: int = 2_000
    close_after_ms: int = 1_000


def found(move: Move) -> MoveFound:
    """Return a move of the job in the oracle's form."""
    prices = Fraction(move.before), Fraction(move.after)
    return MoveFound(move.isin, move.start_us, move.end_us, move.seq, *prices)


def moves_in(client: redis.Redis, keys: AnalyticsKeys) -> list[MoveFound]:
    """Return the moves in Redis, sorted."""
    entries: Any = client.xrange(keys.moves)
    return sorted(found(Move.decode(fields[b"move"])) for _, fields in entries)


class _One(NamedTuple):
    time_us: int
    seq: int
    position: int
    price: Fraction


def moves(
    entries: Iterable[Entry], rules: MoveRules
) -> tuple[list[MoveFound], Counter[int]]:
    """Return every move, sorted, and how many came too late by partition."""
    instruments: dict[str, list[_One]] = defaultdict(list)
    too_late: Counter[int] = Counter()
    for entry in entries:
        time_us = min(entry.time_us, entry.append_ms * 1_000)
        judged_ms = entry.append_ms - rules.close_after_ms
        judged_ms -= judged_ms % rules.batch_ms
        if time_us < judged_ms * 1_000:
            too_late[entry.partition] += 1
        elif entry.counts_for("last"):
            one = _One(time_us, entry.seq, entry.position, Fraction(entry.price))
            instruments[entry.isin].append(one)
    found = [
        move
        for isin, trades in instruments.items()
        for move in _of(isin, trades, rules)
    ]
    return sorted(found), too_late


def _of(isin: str, trades: list[_One], rules: MoveRules) -> Iterable[MoveFound]:
    trades.sort()
    for sign in (1, -1):
        prices = [_quick(sign * trade.price) for trade in trades]
        was_complete = False
        for number, trade in enumerate(trades):
            first = trades[_first(trades, prices, number, rules)]
            change = sign * (trade.price - first.price)
            is_complete = 100 * change >= rules.percent * first.price
            if is_complete and not was_complete:
                yield MoveFound(
                    isin,
                    first.time_us,
                    trade.time_us,
                    trade.seq,
                    first.price,
                    trade.price,
                )
            was_complete = is_complete


def _quick(price: Fraction) -> Fraction | int:
    # Python compares whole numbers ten times as fast.
    return price.numerator if price.denominator == 1 else price


def _first(
    trades: Sequence[_One],
    prices: Sequence[Fraction | int],
    number: int,
    rules: MoveRules,
) -> int:
    """Return which trade a move to another would begin with: the latest lowest one."""
    since_us = trades[number].time_us - rules.span_us
    first = number
    for before in range(number, -1, -1):
        if trades[before].time_us < since_us:
            break
        if prices[before] < prices[first]:
            first = before
    return first
