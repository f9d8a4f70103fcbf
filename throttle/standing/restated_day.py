"""The day so far without the trades that were taken back. Pure, but for looking back.

Volume, value and number are what is left. High, low and open are asked of the day's
trades that stand, where a trade that was taken back could have made them: those are all
there as soon as they are as many as the day has. Where the log does not hold them all,
or there are too many, high, low and open stay.
"""

from collections.abc import Sequence
from functools import reduce

from throttle.contract.day_so_far import DaySoFar
from throttle.contract.group import decimal_text, units
from throttle.contract.row_sums import Amounts, RowSums
from throttle.standing.look_back import LookBack
from throttle.standing.restated import Restated
from throttle.standing.settled import LoggedTrade
from throttle.window.traded import FirstTrade

_NOTHING = Amounts(0, 0, None, None)


def day_without(
    day: DaySoFar, of_it: Restated, window_ms: int
) -> tuple[DaySoFar, bool]:
    """Return the day of an instrument, which has all trades of the batch, without those
    that it takes back; and whether one of them may have made its range or open.
    """
    gone = [one for one in of_it.taken_back if _is_since(day.start_ms, one, window_ms)]
    amounts = day.sums.amounts
    if amounts is None or not gone:
        return day, False
    less = reduce(Amounts.fold, (one.amounts for one in gone))
    left = amounts._replace(
        volume=amounts.volume - less.volume, value=amounts.value - less.value
    )
    is_edge = less.high == amounts.high or less.low == amounts.low
    may_differ = (less.high is not None and is_edge) or day.first in {
        one.version for one in gone
    }
    return day._replace(sums=RowSums(day.sums.trades - len(gone), left)), may_differ


def day_of_trades(isin: str, day: DaySoFar, look: LookBack, window_ms: int) -> DaySoFar:
    """Return a day with the range and the open of its trades that stand.

    Raises what reading the log raises.
    """
    while True:
        standing = [
            one
            for one in look.settled(isin).standing
            if _is_since(day.start_ms, one, window_ms)
        ]
        if len(standing) >= day.sums.trades or not look.extend():
            break
    return day if len(standing) != day.sums.trades else _of_trades(day, standing)


def _is_since(start_ms: int, one: LoggedTrade, window_ms: int) -> bool:
    return one.append_ms - one.append_ms % window_ms >= start_ms


def _of_trades(day: DaySoFar, standing: Sequence[LoggedTrade]) -> DaySoFar:
    every = reduce(Amounts.fold, (one.amounts for one in standing), _NOTHING)
    of_last = (one for one in standing if one.trade.updates.last)
    firsts = (FirstTrade(one.version, _price(one)) for one in of_last)
    first = min(firsts, key=lambda one: one.order, default=None)
    opened = (b"", b"") if first is None else first
    return DaySoFar(day.start_ms, RowSums(len(standing), every), *opened)


def _price(one: LoggedTrade) -> bytes:
    return decimal_text(units(one.trade.price))
