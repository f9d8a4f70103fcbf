"""Trades as those of an instrument and of each of its series, one by one or by columns.

Pure. Which series there are, the deployment says (``ingest/series.py``). A trade counts
for its instrument, and once more for each series that it is in. Before that it is told
its session by the calendar, where it does not say one itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ingest.series import SESSION, VENUE, TradeSeries, parse_series
from ingest.trade import MAX_PAYLOAD_BYTES, Trade

if TYPE_CHECKING:
    # A task of Spark loads what reads calendars only where there are some.
    from ingest.market_hours.trading_sessions import TradingSessions

_MINUTE_US = 60_000_000
_US_PER_MINUTE = pa.scalar(_MINUTE_US, pa.int64())


def _field(name: str, text: str) -> str:
    """Return a further field of text as ``Trade.to_wire`` writes it."""
    return f',"{name}":"{text}"'


@dataclass(frozen=True, slots=True)
class SeriesRules:
    """Which series are kept, and which calendars say sessions; none unless told."""

    series: tuple[TradeSeries, ...] = ()
    sessions: "TradingSessions | None" = None

    @property
    def is_any(self) -> bool:
        """Whether trades are other than they come."""
        return bool(self.series) or self.sessions is not None

    def labelled(self, trade: Trade) -> Trade:
        """Return a trade that says its session, if anybody knows it.

        One that would become too large for an entry stays as it is.
        """
        if self.sessions is None or SESSION in trade.extra or not trade.is_trade:
            return trade
        session = self.sessions.session_of(trade.isin, trade.time_us // _MINUTE_US)
        if session is None:
            return trade
        labelled = replace(trade, extra={**trade.extra, SESSION: session})
        return trade if len(labelled.to_wire()) > MAX_PAYLOAD_BYTES else labelled

    def keys_of(self, trade: Trade) -> Iterator[str]:
        """Yield the keys that a trade, which says its session, counts for."""
        yield trade.isin
        for series in self.series:
            if series.has(trade.extra):
                yield series.key(trade.isin)

    def by_columns(
        self, payloads: pa.Array, isins: pa.Array, times_us: pa.Array
    ) -> tuple[pa.Array, pa.Array, pa.Array]:
        """Return payloads (of the wire form) and keys for all that trades count for.

        With them comes the place of each in the given columns.
        """
        payloads = self._labelled(payloads, isins, times_us)
        every = pa.repeat(pa.scalar(True), len(payloads))
        places = [pc.indices_nonzero(every)]
        keys = [isins]
        for series in self.series:
            is_in = every
            for name, text in ((VENUE, series.venue), (SESSION, series.session)):
                if text:
                    says = pc.match_substring(payloads, _field(name, text))
                    is_in = pc.and_(is_in, says)
            theirs = pc.indices_nonzero(is_in)
            if len(theirs):
                places.append(theirs)
                behind = series.key("")
                some = isins.take(theirs)
                keys.append(pc.binary_join_element_wise(some, behind, ""))
        of_all = pa.concat_arrays(places)
        return payloads.take(of_all), pa.concat_arrays(keys), of_all

    def _labelled(
        self, payloads: pa.Array, isins: pa.Array, times_us: pa.Array
    ) -> pa.Array:
        if self.sessions is None or not len(payloads):
            return payloads
        ends = self._ends(isins, times_us)
        is_said = pc.match_substring(payloads, f',"{SESSION}":')
        sizes = pc.add(pc.binary_length(payloads), pc.binary_length(ends))
        fits = pc.less(sizes, pa.scalar(MAX_PAYLOAD_BYTES + 2, sizes.type))
        is_told = pc.and_(pc.and_(pc.invert(is_said), fits), pc.is_valid(ends))
        bodies = pc.binary_slice(payloads, 0, -1)
        told = pc.binary_join_element_wise(bodies, ends, pa.scalar(b"", pa.binary()))
        return pc.if_else(is_told.fill_null(False), told, payloads)

    def _ends(self, isins: pa.Array, times_us: pa.Array) -> pa.Array:
        """Return the end of each payload, with its session; null if nobody knows it."""
        sessions = self.sessions
        assert sessions is not None
        places = pc.divide(times_us, _US_PER_MINUTE).cast(pa.string())
        letters = pc.utf8_slice_codeunits(isins, 0, 2)
        if not sessions.are_by_letters:
            letters = pa.repeat(pa.scalar("--"), len(isins))
        encoded = pc.binary_join_element_wise(letters, places, "").dictionary_encode()
        names = (
            sessions.session_of(place[:2], int(place[2:]))
            for place in encoded.dictionary.to_pylist()
        )
        ends = [name and _field(SESSION, name).encode() + b"}" for name in names]
        return pa.array(ends, pa.binary()).take(encoded.indices)


NO_SERIES = SeriesRules()
"""Of a deployment that keeps none."""


@lru_cache(maxsize=16)
def find_series(series: str, sessions: str) -> SeriesRules:
    """Return what two settings say. Raises ValueError."""
    if not series and not sessions:
        return NO_SERIES
    if not sessions:
        return SeriesRules(parse_series(series))
    from ingest.market_hours.trading_sessions import TradingSessions

    return SeriesRules(parse_series(series), TradingSessions.parse(sessions))
