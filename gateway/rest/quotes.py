"""REST: latest quotes. A poller that has them already costs next to nothing."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from gateway.admission.tokens import TokenGrant
from gateway.http.authorization import Permit, check_allowed
from gateway.http.conditional import ConditionalAnswers, Prepared, make_etag
from gateway.http.openapi import answers, conditional
from gateway.http.parameters import shorten
from gateway.http.problems import Problem
from gateway.http.schemas import Quote, Quotes
from gateway.protocol.messages import check_key, split_list
from gateway.rest.day_statistics import encode_day
from gateway.rest.issues import IssueKey, Known, Market, Sector
from gateway.rest.selection import Wish, resolve, select
from gateway.stream.board import Board
from gateway.stream.frames import list_object
from gateway.upstream.analytics_store import AnalyticsStore
from ingest.issue_table.issue_entry import FIELDS, IssueEntry
from ingest.issue_table.known_issues import Issues

DAY = "day"
"""The field that is the statistics of an issue's day."""

MORE_FIELDS = (*FIELDS[1:], DAY)
"""What a quote may have besides: all that is known of an issue, and its day."""

AT_ONCE = 50
"""This many ISINs are checked before the event loop may do something else."""

Isins = Annotated[
    str | None,
    Query(
        description="ISINs or codes, separated by commas; 1,000 at most",
        examples=["KR7005930003"],
    ),
]
Codes = Annotated[
    str | None,
    Query(description="codes of the issue table, separated by commas; 1,000 at most"),
]
Fields = Annotated[
    str | None,
    Query(
        description="what else is wanted of each issue: fields of the issue table, "
        "separated by commas; day for the statistics of its day",
        examples=["name,prev_close"],
    ),
]


def create_router(
    board: Board,
    known: Known,
    found: AnalyticsStore,
    permit: Permit,
    answer: ConditionalAnswers,
) -> APIRouter:
    """Build the router of latest quotes."""
    router = APIRouter(tags=["quotes"])
    prepared = Prepared()

    @router.get(
        "/v1/quotes",
        responses=answers(
            Quotes,
            *(400, 401, 403, 503),
            description="The quotes",
            is_conditional=True,
        ),
        openapi_extra=conditional(),
    )
    async def list_quotes(
        request: Request,
        isins: Isins = None,
        codes: Codes = None,
        market: Market = None,
        sector: Sector = None,
        fields: Fields = None,
    ) -> Response:
        """Latest quote of every issue, or of those that fit all that is asked for.

        Issues that have not traded yet are left out; the order is that of ISINs.
        """
        grant, issues = permit(request), known()
        wish = Wish(isins, codes, market, sector)
        names = _read_fields(fields)
        await _check_in_slices(isins)
        wanted = select(wish, issues)
        if isins is not None or codes is not None:
            for isin in sorted(wanted or ()):
                check_allowed(grant, isin)
        days_version = await found.days_version() if DAY in names else None
        etag = _name(board, wish, names, issues, grant, days_version)

        async def build() -> bytes:
            body = prepared.find(board.position, etag)
            if body is None:
                isins = board.isins() if wanted is None else sorted(wanted)
                allowed = [isin for isin in isins if grant.allows(isin)]
                add = await _adder(names, issues, found, allowed)
                body = _encode(board, allowed, add)
                prepared.keep(board.position, etag, body)
            return body

        return await answer.give_named(request, etag, build)

    @router.get(
        "/v1/quotes/{issue}",
        responses=answers(
            Quote,
            *(400, 401, 403, 404, 503),
            description="The issue's latest trade",
            is_conditional=True,
        ),
        openapi_extra=conditional(),
    )
    async def get_quote(
        request: Request, issue: IssueKey, fields: Fields = None
    ) -> Response:
        """Latest quote of one issue."""
        grant, issues = permit(request), known()
        names = _read_fields(fields)
        isin = resolve(issue, issues)
        check_allowed(grant, isin)
        row = board.get(isin)
        if row is None:
            raise Problem(404, "unknown_key", f"{isin} has not traded yet")
        add = await _adder(names, issues, found, [isin])
        return answer.give(request, add(isin, row.body))

    return router


async def _check_in_slices(isins: str | None) -> None:
    """Check ISINs before they are selected: check digits take time."""
    for number, isin in enumerate(split_list(isins or ""), 1):
        check_key(isin)
        if number % AT_ONCE == 0:
            await asyncio.sleep(0)


def _read_fields(text: str | None) -> tuple[str, ...]:
    names = split_list(text or "")
    for name in names:
        if name not in MORE_FIELDS:
            known = ", ".join(MORE_FIELDS)
            detail = f"fields: {shorten(name)}: must be of {known}"
            raise Problem(400, "bad_request", detail)
    return names


_Adder = Callable[[str, bytes], bytes]


async def _adder(
    names: tuple[str, ...],
    issues: Issues,
    found: AnalyticsStore,
    isins: Sequence[str],
) -> _Adder:
    """Return what adds fields of the issue table, and the day, to an issue's quote."""
    if not names:
        return lambda _, body: body
    of_table = tuple(name for name in names if name != DAY)
    has_day = DAY in names
    days = await found.days(isins) if has_day else {}

    def add(isin: str, body: bytes) -> bytes:
        entry = issues.get(isin)
        parts = body[:-1]
        if of_table:
            encoded = (entry or IssueEntry(isin)).encode(of_table)
            parts = b'%b,"issue":%b' % (parts, encoded)
        if has_day:
            day = encode_day(days.get(isin), entry)
            parts = b'%b,"day":%b' % (parts, day)
        return parts + b"}"

    return add


def _name(
    board: Board,
    wish: Wish,
    names: tuple[str, ...],
    issues: Issues,
    grant: TokenGrant,
    days_version: str | None,
) -> str:
    """Name the answer by what decides it: nothing has to be built for a 304."""
    position = board.position
    return make_etag(
        f"{position.epoch}:{position.offset}".encode(),
        wish.encode(),
        ",".join(names).encode(),
        issues.digest.encode(),
        grant.encode_keys(),
        (days_version or "").encode(),
    )


def _encode(board: Board, isins: Sequence[str], add: _Adder) -> bytes:
    rows = ((isin, board.get(isin)) for isin in isins)
    bodies = [add(isin, row.body) for isin, row in rows if row is not None]
    return list_object(board.position, bodies)
