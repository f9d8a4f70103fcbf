"""What whoever sent a request may have, and how much work it may make."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from fastapi import Request

from gateway.admission.addresses import address_of
from gateway.admission.loop_turns import current_share
from gateway.admission.tokens import EVERYTHING, TokenGrant, TokenRefused
from gateway.admission.work import WorkBudget, WorkRefused, payers_of
from gateway.http.operator_access import OperatorAccess
from gateway.http.parameters import shorten
from gateway.http.problems import Problem
from gateway.stream.board import Board
from gateway.stream.hub import Hub
from gateway.stream.paced_source import PacedSource
from ingest.instrument_table.known_instruments import Instruments


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever sent a request: what of the ``instruments`` it may have, and as of when.

    ``paced`` is set where a token allows one price of an instrument in an interval;
    ``board`` is what it may see of the newest quotes. Work is charged to ``payers``.
    """

    grant: TokenGrant
    instruments: Instruments
    board: Board
    paced: PacedSource | None = None
    payers: tuple[str, ...] = ()
    work: WorkBudget | None = None

    @property
    def address(self) -> str:
        """Where it came from; all operators are one."""
        return self.payers[0] if self.payers else ""

    @property
    def interval_ms(self) -> int:
        """At most one price of an instrument may be told in this time; 0: each."""
        return 0 if self.paced is None else self.paced.interval_ms

    def allows(self, isin: str) -> bool:
        """Say whether an instrument may be had."""
        return self.grant.allows_instrument(isin, self.instruments)

    def until_ms(self, to_ms: int | None = None) -> int | None:
        """Return up to when prices may be told of what is asked up to ``to_ms``."""
        if self.paced is None:
            return to_ms
        shown_ms = self.paced.shown_ms
        return shown_ms if to_ms is None else min(to_ms, shown_ms)

    def encode_rights(self) -> bytes:
        """Return what tells answers to it from those to others."""
        keys = self.grant.encode_keys()
        return b"%d %b %b" % (self.interval_ms, self.instruments.digest.encode(), keys)

    def charge(self, rows: int) -> None:
        """Count work against it, in rows."""
        if self.work is not None:
            self.work.charge(self.payers, rows, time.monotonic())

    def check_allowed(self, isin: str, name: str | None = None) -> None:
        """Return if an instrument that a name stands for may be had. Raises Problem.

        It is refused by that name: what a code stands for is not everybody's to know.
        """
        if not self.allows(isin):
            shown = shorten(isin if name is None else name)
            raise Problem(403, "not_allowed", f"{shown}: not in your token")

    def check_everything_allowed(self) -> None:
        """Return if every instrument may be had, at every moment. Raises Problem."""
        if not self.grant.allows_everything:
            raise Problem(403, "not_allowed", "a window holds every instrument")
        self.check_every_moment_allowed()

    def check_every_moment_allowed(self) -> None:
        """Return if prices may be had as often as they change. Raises Problem."""
        if self.paced is not None:
            rule = f"one price of an instrument in {self.interval_ms} ms"
            detail = f"this changes with every trade; your token allows {rule}"
            raise Problem(403, "not_allowed", detail)


Permit = Callable[[Request], Caller]


def create_permit(
    hub: Hub, access: OperatorAccess | None, *, takes_tickets: bool = False
) -> Permit:
    """Return the function that reads a request's token (RFC 6750, 2.1).

    With ``takes_tickets`` a token of its kind may stand in the address, too, as
    ``ticket``: a browser's EventSource sends no header of the page's. The function
    raises TokenRefused, and Problem where an address or a token has made as much
    work as it may. Operators may have everything, without another token.
    """

    def permit(request: Request) -> Caller:
        if access is not None and (
            hub.tokens is None or access.is_operator(request.headers)
        ):
            return Caller(EVERYTHING, hub.instruments, hub.board)
        grant = EVERYTHING if hub.tokens is None else read_grant(request)
        now_ms = time.time_ns() // 1_000_000
        paced = hub.paces.of(grant.min_interval_ms, now_ms)
        board = hub.board if paced is None else paced.board
        payers = payers_of(address_of(request.scope), grant.holder)
        if (share := current_share()) is not None:
            share.payers = payers
        try:
            hub.work.check(payers, time.monotonic())
        except WorkRefused as refusal:
            hub.counters.work_refused += 1
            raise put_off(refusal) from None
        return Caller(grant, hub.instruments, board, paced, payers, hub.work)

    def read_grant(request: Request) -> TokenGrant:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        try:
            ticket = request.query_params.get("ticket") if takes_tickets else None
            if ticket is not None and not scheme and hub.tokens is not None:
                return hub.tokens.read_ticket(ticket)
            if scheme.lower() != "bearer" or hub.tokens is None:
                raise TokenRefused("the request has no header Authorization: Bearer")
            return hub.tokens.read(token.strip())
        except TokenRefused:
            hub.counters.clients_token_refused += 1
            raise

    return permit


def put_off(refusal: WorkRefused) -> Problem:
    """Return the answer to what may be asked for again later."""
    after_s = str(ceil(refusal.wait_ms / 1_000))
    return Problem(429, "rate_limited", refusal.reason, {"Retry-After": after_s})
