"""How many requests one address may make, and when they begin."""

import time
from math import ceil

from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.admission.addresses import address_of
from gateway.admission.limits import Budgets
from gateway.admission.loop_turns import LoopShare, LoopTurns
from gateway.http.problems import problem
from gateway.stream.counters import Counters

FREE = "/health/"
"""Load balancers ask for these, and nobody's browser may make a gateway look ill."""


class RequestBudget:
    """Answers 429 to an address that has asked too often, before anything is done.

    With ``turns``, others wait until their address may have more of the event loop.
    """

    def __init__(
        self,
        app: ASGIApp,
        rate_per_s: float,
        budgets: Budgets,
        counters: Counters,
        turns: LoopTurns | None = None,
    ) -> None:
        self._app = app
        self._rate_per_s = rate_per_s
        self._budgets = budgets
        self._counters = counters
        self._turns = turns

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or say when to come again."""
        if scope["type"] == "http" and not scope["path"].startswith(FREE):
            address = address_of(scope)
            wait_ms = self._budgets.take(address, time.monotonic())
            if wait_ms:
                self._counters.requests_rate_limited += 1
                rule = f"more than {self._rate_per_s:g} requests a second of an address"
                later = {"Retry-After": str(ceil(wait_ms / 1_000))}
                refusal = problem(429, "rate_limited", rule, later)
                await refusal(scope, receive, send)
                return
            if self._turns is not None:
                share = LoopShare(self._turns, address)
                await share.wait()
                await share.charged(self._app(scope, receive, send))
                return
        await self._app(scope, receive, send)
