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
from throttle.standing.settled import LoggedTrade, settle
from throttle.window.traded import FirstTrade

_NOTHING = Amounts(0, 0, None, None)


def restated_day(
    isin: str, day: DaySoFar, of_it: Restated, look: LookBack, window_ms: int
) -> DaySoFar:
    """Return the day of an instrument, which has all trades of the batch, without
    those that it takes back.
    """

    def is_of_day(one: LoggedTrade) -> bool:
        window_begin_ms = one.append_ms - one.append_ms % window_ms
        return window_begin_ms >= day.start_ms

    taken_back = [one for one in of_it.taken_back if is_of_day(one)]
    amounts = day.sums.amounts
    if amounts is None or not taken_back:
        return day
    number = day.sums.trades - len(taken_back)
    gone = reduce(Amounts.fold, (one.amounts for one in taken_back))
    left = amounts._replace(
        volume=amounts.volume - gone.volume, value=amounts.value - gone.value
    )
    may_differ = gone.high is not None and (
        gone.high == amounts.high or gone.low == amounts.low
    )
    if not may_differ and day.first not in {one.version for one in taken_back}:
        return day._replace(sums=RowSums(number, left))
    while True:
        standing = [
            one for one in settle(look.entries[isin]).standing if is_of_day(one)
        ]
        if len(standing) >= number or not look.extend():
            break
    if len(standing) != number:
        return day._replace(sums=RowSums(number, left))
    return _with_range(day, number, left, standing)


def _with_range(
    day: DaySoFar, number: int, left: Amounts, standing: Sequence[LoggedTrade]
) -> DaySoFar:
    """Return a day with the range and the open of all its trades."""
    every = reduce(Amounts.fold, (one.amounts for one in standing), _NOTHING)
    left = left._replace(high=every.high, low=every.low)
    of_last = (one for one in standing if one.trade.updates.last)
    firsts = (FirstTrade(one.version, _price(one)) for one in of_last)
    first = min(firsts, key=lambda one: one.order, default=None)
    opened = (b"", b"") if first is None else first
    return DaySoFar(day.start_ms, RowSums(number, left), *opened)


def _price(one: LoggedTrade) -> bytes:
    return decimal_text(units(one.trade.price))
