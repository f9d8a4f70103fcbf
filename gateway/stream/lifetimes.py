"""When a connection is ended: for being slow, without a token, idle or old. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from gateway.admission.bounds import Bounds
from gateway.stream.commands import ClientCommands
from tickthrottle_client.tick_v1 import CloseCode


class DueEnd(NamedTuple):
    """How a connection is to be closed; ``counter`` is the field of ``Counters``."""

    code: CloseCode
    reason: str
    counter: str


class Lifetime:
    """By when a client has to show a token and to ask for keys, and when it ends.

    While what it has said waits for its turn, neither time goes on: neighbours at its
    address may make that long.
    """

    __slots__ = ("_began_s", "_bounds", "_most_s", "_waited_s", "_waits_since_s")

    def __init__(self, now_s: float, bounds: Bounds, most_s: float) -> None:
        self._began_s = now_s
        self._bounds = bounds
        self._most_s = most_s
        self._waited_s = 0.0
        self._waits_since_s: float | None = None

    def begin_wait(self, now_s: float) -> None:
        """Note that something the client has said waits for its turn."""
        self._waits_since_s = now_s

    def end_wait(self, now_s: float) -> None:
        """Note that the turn has come."""
        self._waited_s, self._waits_since_s = self._all_waited_s(now_s), None

    def due_end(
        self, commands: ClientCommands, now_s: float, *, is_stuck: bool
    ) -> DueEnd | None:
        """Return how the connection is to end now, None if it goes on."""
        if is_stuck:
            reason = f"nothing was read for {self._bounds.slow_close_s:g} s"
            return DueEnd(CloseCode.SLOW, reason, "clients_slow_closed")
        ends = self._ends(commands, now_s)
        return next((end for end_s, end in ends if end_s <= now_s), None)

    def next_end_s(self, commands: ClientCommands, now_s: float) -> float:
        """Return when ``due_end`` may have something else to say than it does now."""
        return max(now_s, min(end_s for end_s, _ in self._ends(commands, now_s)))

    def _all_waited_s(self, now_s: float) -> float:
        since_s = self._waits_since_s
        return self._waited_s + (0.0 if since_s is None else now_s - since_s)

    def _ends(
        self, commands: ClientCommands, now_s: float
    ) -> Iterator[tuple[float, DueEnd]]:
        """Yield by when what would have to happen, the gravest first."""
        began_s, bounds = self._began_s + self._all_waited_s(now_s), self._bounds
        if commands.grant is None:
            reason = f"no token was shown in {bounds.auth_s:g} s"
            end = DueEnd(CloseCode.TOKEN_REFUSED, reason, "clients_token_refused")
            yield began_s + bounds.auth_s, end
        if commands.expires_s is not None:
            reason = "the token has expired"
            end = DueEnd(CloseCode.TOKEN_EXPIRED, reason, "clients_token_expired")
            yield commands.expires_s, end
        if not commands.has_asked:
            reason = f"nothing was asked for in {bounds.first_keys_s:g} s"
            end = DueEnd(CloseCode.POLICY, reason, "clients_idle_closed")
            yield began_s + bounds.first_keys_s, end
        end = DueEnd(CloseCode.RESTART, "the stream is old", "clients_retired")
        yield self._began_s + self._most_s, end
