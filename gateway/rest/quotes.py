"""REST: latest quotes. A poller that has them already costs next to nothing."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from gateway.admission.work import ROWS_A_DAY
from gateway.http.authorization import Caller
from gateway.http.conditional import Prepared, make_etag
from gateway.http.openapi import conditional
from gateway.http.parameters import shorten
from gateway.http.problems import Problem
from gateway.http.routers import new_router
from gateway.http.schemas import Quote, Quotes
from gateway.http.time_slice import in_slices
from gateway.protocol.messages import check_key, split_list
from gateway.rest.day_statistics import DayBodies
from gateway.rest.instruments import Market, Sector
from gateway.rest.rest_parts import InstrumentKey, RestParts
from gateway.rest.selection import Wish, check_named, select
from gateway.stream.frames import list_object
from gateway.upstream.analytics_store import AnalyticsStore
from ingest.instrument_table.instrument_entry import FIELDS, InstrumentEntry
from ingest.series import REGULAR, TradeSeries, instrument_of, is_series
from throttle.contract.bar_intervals import DayBar
from throttle.contract.snapshot import LastValue

DAY = "day"
"""The field that is the statistics of an instrument's day."""

SERIES = "series"
"""The field that has the quotes of an instrument's series."""

MORE_FIELDS = (*FIELDS[1:], DAY, SERIES)
"""What a quote may have besides: all that is known of an instrument, its day, and the
quotes of its series."""

_REGULAR = TradeSeries("", REGULAR)

Isins = Annotated[
    str | None,
    Query(
        description="ISINs or codes, separated by commas; 1,000 at most",
        examples=["KR7005930003"],
    ),
]
Codes = Annotated[
    str | None,
    Query(
        description="codes of the instrument table, separated by commas; 1,000 at most"
    ),
]
Fields = Annotated[
    str | None,
    Query(
        description="what else is wanted of each instrument: fields of the instrument "
        "table, separated by commas; day for the statistics of its day, series for "
        "the quotes of its series",
        examples=["name,prev_close"],
    ),
]


def create_router(rest: RestParts) -> APIRouter:
    """Build the router of latest quotes."""
    router = new_router("quotes")
    prepared = Prepared()
    analytics = rest.stores.analytics
    quotes = QuoteBodies(analytics)

    @router.get("/v1/quotes", **conditional(Quotes, "The quotes", 403))
    async def list_quotes(
        request: Request,
        isins: Isins = None,
        codes: Codes = None,
        market: Market = None,
        sector: Sector = None,
        fields: Fields = None,
    ) -> Response:
        """Latest quote of every instrument, or of those that fit all that is asked for.

        Instruments that have not traded yet are left out; the order is that of ISINs.
        """
        caller = rest.permit(request)
        wish = Wish(isins, codes, market, sector)
        names = _read_fields(fields)
        await _check_in_slices(isins)
        selected = select(wish, caller.instruments)
        check_named(wish, caller)
        days_version = await analytics.days_version() if DAY in names else None
        board = caller.board
        position = board.position
        etag = make_etag(
            f"{position.epoch}:{position.offset}".encode(),
            wish.encode(),
            ",".join(names).encode(),
            caller.encode_rights(),
            (days_version or "").encode(),
        )

        async def make() -> bytes:
            isins = board.isins() if selected is None else sorted(selected)
            return await quotes.encode_all(caller, isins, names)

        build = partial(
            rest.quick.build_once, request, caller, prepared, position, etag, make
        )
        return await rest.answer.give_named(request, etag, build)

    @router.get(
        "/v1/quotes/{instrument}",
        **conditional(Quote, "The instrument's latest trade", 403, 404),
    )
    async def get_quote(
        request: Request, instrument: InstrumentKey, fields: Fields = None
    ) -> Response:
        """Latest quote of one instrument."""
        names = _read_fields(fields)
        caller, isin = rest.instrument(request, instrument)
        if caller.board.get(isin) is None:
            raise Problem(404, "unknown_key", f"{isin} has not traded yet")
        return rest.answer.give(request, await quotes.encode(caller, isin, names))

    return router


async def _check_in_slices(isins: str | None) -> None:
    """Check ISINs before they are selected: check digits take time."""
    async for _ in in_slices(map(check_key, split_list(isins or ""))):
        pass


def _read_fields(text: str | None) -> tuple[str, ...]:
    """Return the fields that are asked for, each once and in one order."""
    names = split_list(text or "")
    for name in names:
        if name not in MORE_FIELDS:
            known = ", ".join(MORE_FIELDS)
            detail = f"fields: {shorten(name)}: must be of {known}"
            raise Problem(400, "bad_request", detail)
    return tuple(name for name in MORE_FIELDS if name in names)


_Adder = Callable[[LastValue], bytes]


class QuoteBodies:
    """Encodes quotes with further fields of their instruments, and charges it."""

    def __init__(self, store: AnalyticsStore) -> None:
        self._store = store
        self._days = DayBodies()

    async def encode(self, caller: Caller, isin: str, names: tuple[str, ...]) -> bytes:
        """Return an instrument's quote, which it has."""
        add = await self._adder(caller, names, [isin])
        row = caller.board.get(isin)
        return b"null" if row is None else add(row)

    async def encode_all(
        self, caller: Caller, isins: Sequence[str], names: tuple[str, ...]
    ) -> bytes:
        """Return the quotes of those instruments that have one and may be had."""
        allowed = [isin async for isin in in_slices(filter(caller.allows, isins))]
        add = await self._adder(caller, names, allowed)
        board = caller.board
        # As of one position, however long it takes.
        position = board.position
        rows = [row for isin in allowed if (row := board.get(isin))]
        bodies = [add(row) async for row in in_slices(rows)]
        caller.charge(len(rows))
        return list_object(position, bodies)

    async def _adder(
        self, caller: Caller, names: tuple[str, ...], isins: Sequence[str]
    ) -> _Adder:
        """Return what adds fields of the instrument table, and the day, to a quote."""
        if not names:
            return lambda row: row.body
        instruments = caller.instruments
        of_table = tuple(name for name in names if name not in (DAY, SERIES))
        has_day, has_series = DAY in names, SERIES in names
        days: dict[str, DayBar] = {}
        # A day changes with every trade: at a token's interval there is none that is as
        # old as a quote.
        if has_day and caller.paced is None:
            days = await self._store.days(isins)
            caller.charge(ROWS_A_DAY * len(isins))
        board = caller.board

        def day_of(row: LastValue, entry: InstrumentEntry | None) -> bytes:
            regular = None if is_series(row.isin) else board.get(_REGULAR.key(row.isin))
            return self._days.encode(row, days.get(row.isin), entry, regular)

        def series_quotes(isin: str, entry: InstrumentEntry | None) -> bytes:
            rows = [row for key in board.series(isin) if (row := board.get(key))]
            caller.charge(len(rows))
            quotes = [
                b'"%b":%b' % (row.isin[len(isin) + 1 :].encode(), with_day(row, entry))
                for row in rows
            ]
            return b"{%b}" % b",".join(quotes)

        def with_day(row: LastValue, entry: InstrumentEntry | None) -> bytes:
            if not has_day:
                return row.body
            return b'%b,"day":%b}' % (row.body[:-1], day_of(row, entry))

        def add(row: LastValue) -> bytes:
            isin = row.isin
            entry = instruments.get(instrument_of(isin))
            parts = with_day(row, entry)[:-1]
            if of_table:
                encoded = (entry or InstrumentEntry(isin)).encode(of_table)
                head, end = row.body[:-1], parts[len(row.body) - 1 :]
                parts = b'%b,"instrument":%b%b' % (head, encoded, end)
            if has_series:
                parts = b'%b,"series":%b' % (parts, series_quotes(isin, entry))
            return parts + b"}"

        return add
