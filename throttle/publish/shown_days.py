"""The day so far of every instrument that a job publishes, as Redis has it."""

from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import redis

from throttle.contract.day_so_far import STARTS, DaySoFar, DayValue, encode_days
from throttle.contract.session_calendar import SessionCalendars
from throttle.publish import day_columns
from throttle.publish.day_rows import DayBegins, days_after
from throttle.publish.shown_versions import stored_values
from throttle.window.batch import Batch
from throttle.window.group_rows import Place

if TYPE_CHECKING:
    # A task of Spark publishes, too: it should not load what logs.
    from throttle.standing.taken_from_batch import TakenFromBatch


@dataclass(frozen=True, slots=True)
class BatchDays:
    """The days of a batch's instruments once it is published.

    ``columns`` has those of ``day_columns.NO_DAYS``, ``others`` are the rest.
    ``starting`` has the text of each row that starts a day, or changes its open.
    ``shown`` has the days before.
    """

    columns: pa.Table
    others: Mapping[str, DaySoFar]
    starting: Mapping[Place, bytes]
    shown: "ShownDays"

    def __len__(self) -> int:
        return len(self.columns) + len(self.others)

    def before(self) -> list[str]:
        """Return which day each goes on from, as ``publisher.lua`` says."""
        isins = [*self.columns["key"].to_pylist(), *self.others]
        shown = self.shown.days(isins)
        days = (shown[isin] for isin in isins)
        return ["" if d is None else _told(d) for d in days]

    def starting_with(self, end_ms: int) -> str:
        """Return what stands behind the rows of a window in the window log."""
        of_it = ((i, text) for (end, i), text in self.starting.items() if end == end_ms)
        return encode_days([b"%b %b" % (i.encode(), t) for i, t in of_it]).decode()

    def encode(self) -> Iterator[bytes]:
        """Yield what the script is told of each, in that order, then of all."""
        days, starting = self.columns, {isin for _, isin in self.starting}
        texts = day_columns.day_texts(days)
        stored = pc.binary_join_element_wise(days["first"], texts, " ")
        # Of those that go on nothing stands before the text.
        starts = pc.is_in(days["key"], pa.array(starting, pa.string()))
        told = pc.binary_join_element_wise(
            pc.if_else(starts, STARTS.decode(), ""), texts, ""
        )
        said = pc.binary_join_element_wise(days["key"], told, " ")
        isins, values, of_all = (
            column.cast(pa.binary()).to_pylist()
            for column in (days["key"], stored, said)
        )
        yield from chain.from_iterable(zip(isins, values, strict=True))
        for isin, day in self.others.items():
            text = day.text()
            yield from (isin.encode(), DayValue(day.first, text).encode())
            text = STARTS + text if isin in starting else text
            of_all.append(b"%b %b" % (isin.encode(), text))
        yield encode_days(of_all)


def _told(day: DaySoFar) -> str:
    # By the number alone one that was taken back would hide one that came.
    return b",".join(day.text().split(b",")[:4]).decode()


class ShownDays:
    """Adds batches to the days that Redis has.

    Redis decides whether they are what this job knows: where other jobs publish the
    same instruments, a day may have moved on since. Most are kept as columns, those
    that do not fit by themselves.
    """

    def __init__(
        self, client: redis.Redis, key: str, calendars: SessionCalendars
    ) -> None:
        """Begin with nothing; ``key`` is the hash of days."""
        self._client = client
        self._key = key
        self._begins = DayBegins(calendars)
        self._columns = day_columns.NO_DAYS
        self._in_columns: set[str] = set()
        self._others: dict[str, DaySoFar | None] = {}

    def after(self, batch: Batch, taken: "TakenFromBatch | None" = None) -> BatchDays:
        """Return the days once the batch is published. Raises redis.RedisError.

        ``taken`` says what the batch takes back; then it raises what reading the log
        raises, too.
        """
        isins = {isin for window in batch.windows for isin in window.rows}
        self.ask_for(isins)
        end_ms = batch.end.end_ms
        traded = batch.traded.by_instrument()
        going_on = day_columns.after(self._columns, traded, self._begins, end_ms)
        if taken is not None:
            of_them = pc.is_in(going_on["key"], pa.array(taken.restated, pa.string()))
            going_on = going_on.filter(pc.invert(of_them))
        days = self.days(isins - set(going_on["key"].to_pylist()))
        plain = days.keys() - (() if taken is None else taken.restated)
        openings = batch.traded.openings(plain)
        begun, of_rows = day_columns.beginning(
            traded, openings, days, self._begins, end_ms
        )
        for isin in begun["key"].to_pylist():
            del days[isin]
        others, starting = days_after(batch, days, self._begins)
        starting |= of_rows
        if taken is not None:
            theirs = {i: others[i] for i in taken.restated if i in others}
            for isin, day in taken.days_without(theirs).items():
                others[isin], starting[end_ms, isin] = day, STARTS + day.text()
        columns = pa.concat_tables([going_on, begun]).combine_chunks()
        return BatchDays(columns, others, starting, self)

    def days(self, isins: Collection[str]) -> dict[str, DaySoFar | None]:
        """Return the days of instruments that were asked for."""
        days = {isin: self._others[isin] for isin in isins if isin in self._others}
        in_columns = [isin for isin in isins if isin in self._in_columns]
        if in_columns:
            theirs = pc.is_in(self._columns["key"], pa.array(in_columns, pa.string()))
            days |= day_columns.from_columns(self._columns.filter(theirs))
        return days

    def learn(self, of_batch: BatchDays) -> None:
        """Take in that a batch was published."""
        self.forget([*of_batch.columns["key"].to_pylist(), *of_batch.others])
        self._keep(of_batch.others, of_batch.columns)

    def forget(self, isins: Collection[str] | None = None) -> None:
        """Have some instruments, or all, read again."""
        if isins is None:
            self._columns, self._others = day_columns.NO_DAYS, {}
            self._in_columns.clear()
            return
        for isin in isins:
            self._others.pop(isin, None)
        self._in_columns.difference_update(isins)
        theirs = pc.is_in(self._columns["key"], pa.array(isins, pa.string()))
        self._columns = self._columns.filter(pc.invert(theirs))

    def _keep(self, days: Mapping[str, DaySoFar], columns: pa.Table) -> None:
        fitting = day_columns.to_columns(days)
        kept = [self._columns, columns, fitting]
        self._columns = pa.concat_tables(kept).combine_chunks()
        self._in_columns.update(columns["key"].to_pylist())
        self._in_columns.update(in_columns := fitting["key"].to_pylist())
        for isin in days.keys() - set(in_columns):
            self._others[isin] = days[isin]

    def ask_for(self, isins: Set[str]) -> None:
        """Have the days of instruments known. Raises redis.RedisError."""
        unknown, stored = isins - self._in_columns - self._others.keys(), {}
        for isin, value in stored_values(self._client, self._key, unknown):
            if value is None:
                self._others[isin] = None
            else:
                stored[isin] = DayValue.decode(value).day()
        if stored:
            self._keep(stored, day_columns.NO_DAYS)
