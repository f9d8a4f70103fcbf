"""REST: the current trading statuses of instruments."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from gateway.http.conditional import make_etag
from gateway.http.openapi import conditional
from gateway.http.routers import new_router
from gateway.http.schemas import StatusesAnswer
from gateway.http.time_slice import in_slices
from gateway.protocol.market_instruments import refusal_of
from gateway.rest.instruments import Market, Sector
from gateway.rest.quotes import Codes, Isins
from gateway.rest.rest_parts import RestParts
from gateway.rest.selection import Wish, check_named, select
from gateway.stream.statuses.status_delivery import encode_board


def create_router(rest: RestParts) -> APIRouter:
    """Build the router of trading statuses."""
    router = new_router("statuses")
    board = rest.statuses

    @router.get("/v1/statuses", **conditional(StatusesAnswer, "The statuses", 403, 429))
    async def list_statuses(
        request: Request,
        isins: Isins = None,
        codes: Codes = None,
        market: Market = None,
        sector: Sector = None,
    ) -> Response:
        """Newest status of each instrument that has one, by venue and kind.

        Without a parameter of all instruments; in order of ISINs.
        """
        caller = rest.permit(request)
        wish = Wish(isins, codes, market, sector)
        selected = select(wish, caller.instruments)
        check_named(wish, caller)
        name = f"{board.epoch}:{board.number}".encode()
        etag = make_etag(name, wish.encode(), caller.encode_rights())

        async def build() -> bytes:
            wanted = board.isins if selected is None else board.isins & selected
            instruments = caller.instruments
            served = [
                isin
                async for isin in in_slices(filter(caller.allows, sorted(wanted)))
                if refusal_of(isin, instruments) is None
            ]
            entries = board.pick(served)
            caller.charge(len(entries))
            return encode_board(board, entries, is_bare=caller.paced is not None)

        return await rest.answer.give_named(request, etag, build)

    return router
