"""When a connection is ended: for being slow, without a token, idle or old. Pure."""

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
    """By when a client has to show a token and to ask for keys, and when it ends."""

    __slots__ = ("_bounds", "ask_by_s", "auth_by_s", "end_s")

    def __init__(self, now_s: float, bounds: Bounds, most_s: float) -> None:
        self._bounds = bounds
        self.auth_by_s = now_s + bounds.auth_s
        self.ask_by_s = now_s + bounds.first_keys_s
        self.end_s = now_s + most_s

    def due_end(
        self,
        commands: ClientCommands,
        now_s: float,
        *,
        is_stuck: bool,
    ) -> DueEnd | None:
        """Return how the connection is to end now, None if it goes on."""
        if is_stuck:
            reason = f"nothing was read for {self._bounds.slow_close_s:g} s"
            return DueEnd(CloseCode.SLOW, reason, "clients_slow_closed")
        if commands.grant is None and now_s >= self.auth_by_s:
            reason = f"no token was shown in {self._bounds.auth_s:g} s"
            return DueEnd(CloseCode.TOKEN_REFUSED, reason, "clients_token_refused")
        if commands.expires_s is not None and now_s >= commands.expires_s:
            reason = "the token has expired"
            return DueEnd(CloseCode.TOKEN_EXPIRED, reason, "clients_token_expired")
        if not commands.has_asked and now_s >= self.ask_by_s:
            reason = f"nothing was asked for in {self._bounds.first_keys_s:g} s"
            return DueEnd(CloseCode.POLICY, reason, "clients_idle_closed")
        if now_s >= self.end_s:
            return DueEnd(CloseCode.RESTART, "the stream is old", "clients_retired")
        return None

    def next_end_s(self, commands: ClientCommands, now_s: float) -> float:
        """Return when ``due_end`` may have something else to say than it does now."""
        ends_s = [self.end_s]
        if commands.grant is None:
            ends_s.append(self.auth_by_s)
        if commands.expires_s is not None:
            ends_s.append(commands.expires_s)
        if not commands.has_asked:
            ends_s.append(self.ask_by_s)
        return max(now_s, min(ends_s))
