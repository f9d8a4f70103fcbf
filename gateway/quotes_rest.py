"""REST: latest quotes. A poller that has them already costs next to nothing."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from gateway.answers import Answers, Prepared
from gateway.board import Board
from gateway.etag import make_etag
from gateway.frames import quotes_object
from gateway.issues import Issues
from gateway.issues_rest import IssueKey
from gateway.openapi import answers, conditional
from gateway.permits import Permit, check_allowed
from gateway.problems import Problem
from gateway.schemas import Quote, Quotes
from gateway.selection import Wish, resolve, select
from gateway.tokens import Grant

Isins = Annotated[
    str | None,
    Query(description="ISINs, separated by commas", examples=["KR7005930003"]),
]
Codes = Annotated[
    str | None,
    Query(description="codes of the issue list, separated by commas"),
]
Market = Annotated[str | None, Query(min_length=1, description="as the list has it")]
Sector = Annotated[str | None, Query(min_length=1, description="as the list has it")]


def create_router(
    board: Board, issues: Issues, permit: Permit, answer: Answers
) -> APIRouter:
    """Build the router of latest quotes."""
    router = APIRouter(tags=["quotes"])
    prepared = Prepared()

    @router.get(
        "/v1/quotes",
        responses=answers(
            Quotes, *(400, 401, 403), description="The quotes", is_conditional=True
        ),
        openapi_extra=conditional(),
    )
    async def list_quotes(
        request: Request,
        isins: Isins = None,
        codes: Codes = None,
        market: Market = None,
        sector: Sector = None,
    ) -> Response:
        """Latest quote of every issue, or of those that fit all that is asked for.

        Issues that have not traded yet are left out; the order is that of ISINs.
        """
        grant = permit(request)
        wish = Wish(isins, codes, market, sector)
        wanted = select(wish, issues)
        if isins is not None or codes is not None:
            for isin in sorted(wanted or ()):
                check_allowed(grant, isin)
        etag = _name(board, wish, issues, grant)

        def build() -> bytes:
            body = prepared.find(board.position, etag)
            if body is None:
                body = _encode(board, wanted, grant)
                prepared.keep(board.position, etag, body)
            return body

        return answer.give_named(request, etag, build)

    @router.get(
        "/v1/quotes/{issue}",
        responses=answers(
            Quote,
            *(400, 401, 403, 404),
            description="The issue's latest trade",
            is_conditional=True,
        ),
        openapi_extra=conditional(),
    )
    async def get_quote(request: Request, issue: IssueKey) -> Response:
        """Latest quote of one issue."""
        grant = permit(request)
        isin = resolve(issue, issues)
        check_allowed(grant, isin)
        row = board.get(isin)
        if row is None:
            raise Problem(404, "unknown_key", f"{isin} has not traded yet")
        return answer.give(request, row.body)

    return router


def _name(board: Board, wish: Wish, issues: Issues, grant: Grant) -> str:
    """Name the answer by what decides it: nothing has to be built for a 304."""
    position = board.position
    return make_etag(
        f"{position.epoch}:{position.offset}".encode(),
        wish.encode(),
        issues.digest.encode(),
        grant.encode_keys(),
    )


def _encode(board: Board, wanted: frozenset[str] | None, grant: Grant) -> bytes:
    isins = board.isins() if wanted is None else sorted(wanted)
    rows = [board.get(isin) for isin in isins if grant.allows(isin)]
    return quotes_object(board.position, [row.body for row in rows if row is not None])
