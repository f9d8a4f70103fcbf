"""What one client says and how it is answered: text in, frames out. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from gateway.admission.limits import TokenBucket
from gateway.admission.tokens import (
    EVERYTHING,
    TokenExpired,
    TokenGrant,
    TokenReader,
    TokenRefused,
)
from gateway.protocol.messages import (
    Auth,
    BadMessage,
    Command,
    ListKeys,
    MessageId,
    Rejection,
    Subscribe,
    Unsubscribe,
    parse,
    read_id,
    split_keys,
)
from gateway.settings import GatewaySettings
from gateway.stream import frames
from gateway.stream.counters import Counters
from gateway.stream.delivery import Delivery
from ingest.trade import ISIN_CHARS
from tickthrottle_client.tick_v1 import CloseCode

NOT_ALLOWED = "your token does not allow it"

NOT_HELD = "you do not hold it"

MOST_LIMITED = 100
"""This many messages in a row that come too fast end the connection, with 4429."""

MOST_BAD = 20
"""This many bad messages in a row end the connection, with 4500."""


class ClientCommands:
    """Answers a client's messages; ``delivery`` does what they ask for.

    ``answer`` never raises on what a client may send; ``ending`` is set when the
    connection is to be closed after it. A client holds ``max_keys`` keys at most.
    """

    __slots__ = (
        "_bad",
        "_bucket",
        "_counters",
        "_limited",
        "_settings",
        "_tokens",
        "delivery",
        "ending",
        "expires_s",
        "grant",
        "has_asked",
    )

    def __init__(
        self,
        delivery: Delivery,
        settings: GatewaySettings,
        counters: Counters,
        now_s: float,
        tokens: TokenReader | None = None,
    ) -> None:
        self.delivery = delivery
        self._settings = settings
        self._counters = counters
        self._bucket = TokenBucket(
            settings.messages_per_second, settings.message_burst, now_s
        )
        self._limited = self._bad = 0
        self.has_asked = False
        self.ending: tuple[CloseCode, str] | None = None
        self._tokens = tokens
        self.grant: TokenGrant | None = EVERYTHING if tokens is None else None
        self.expires_s: float | None = None

    def answer(self, text: str, now_s: float, now_us: int) -> bytes:
        """Carry out one message and return the frame that answers it.

        ``now_s`` is a clock that does not go back, ``now_us`` the time of day.
        """
        wait_ms = self._bucket.take(now_s)
        if wait_ms:
            self._counters.messages_rate_limited += 1
            self._limited += 1
            if self._limited >= MOST_LIMITED:
                self._end(CloseCode.TOO_MANY_MESSAGES, "too many messages")
            rate = self._settings.messages_per_second
            return frames.error_frame(
                "rate_limited",
                f"more than {rate:g} messages a second",
                read_id(text),
                retry_after_ms=wait_ms,
            )
        self._limited = 0
        try:
            answer = self._carry_out(parse(text), now_s, now_us)
            self._bad = 0
            return answer
        except BadMessage as error:
            self._counters.messages_refused += 1
            self._bad += 1
            if self._bad >= MOST_BAD:
                self._end(CloseCode.BAD_MESSAGES, "too many bad messages")
            return frames.error_frame(error.code, str(error), error.message_id)

    def _carry_out(self, command: Command, now_s: float, now_us: int) -> bytes:
        if isinstance(command, Auth):
            return self._authenticate(command, now_s, now_us)
        match command:
            case Subscribe():
                return self.subscribe(command)
            case Unsubscribe():
                return self._unsubscribe(command)
            case ListKeys(message_id):
                return self._ack(message_id, "list", self.delivery.keys, [])
        return frames.pong_frame(command.message_id, now_us)

    def _end(self, code: CloseCode, reason: str) -> None:
        if self.ending is None:
            self._counters.clients_abusive_closed += 1
            self.ending = (code, reason)

    def admit(self, grant: TokenGrant, now_s: float, now_us: int) -> list[str]:
        """Let the client have what is granted; return the keys it loses."""
        self.grant = grant
        if grant.expires_us is not None:
            self.expires_s = now_s + (grant.expires_us - now_us) / 1e6
        lost = [key for key in self.delivery.keys if not grant.allows(key)]
        self.delivery.drop(lost)
        self._set_interval(self.delivery.interval_ms)
        return lost

    def _authenticate(self, command: Auth, now_s: float, now_us: int) -> bytes:
        if self._tokens is None:
            raise BadMessage(
                "bad_request",
                "op: no authentication is configured",
                command.message_id,
            )
        try:
            grant = self._tokens.read(command.token)
        except TokenExpired as error:
            self.ending = (CloseCode.TOKEN_EXPIRED, str(error))
            self._counters.clients_token_expired += 1
            raise BadMessage("not_allowed", str(error), command.message_id) from None
        except TokenRefused as error:
            self.ending = (CloseCode.TOKEN_REFUSED, str(error))
            self._counters.clients_token_refused += 1
            raise BadMessage("not_allowed", str(error), command.message_id) from None
        lost = self.admit(grant, now_s, now_us)
        return self._ack(
            command.message_id,
            "auth",
            self.delivery.keys,
            [Rejection(key, "not_allowed", NOT_ALLOWED).to_wire() for key in lost],
            expires=grant.expires_us,
            min_interval_ms=self.delivery.interval_ms,
        )

    def subscribe(self, command: Subscribe) -> bytes:
        """Add keys, ask for their snapshot and return the ack.

        Raises BadMessage, having changed nothing, if that is more than the limit.
        """
        grant = self.grant
        if grant is None:
            raise BadMessage(
                "not_allowed", "show a token first, with auth", command.message_id
            )
        # First without looking at the keys: checking thousands of them takes time.
        if len(command.keys) > self._settings.max_keys:
            self._check_limit(command.message_id, command.keys)
        codes = self._resolve(command.keys)
        # What each key was called when it was asked for.
        names, keys = {}, command.keys
        if codes:
            names = {codes.get(key, key): key for key in reversed(keys)}
            keys = tuple(reversed(names))
        accepted, rejected = split_keys(keys, self.delivery.issues)
        if grant.keys is not None:
            rejected += [
                Rejection(key, "not_allowed", NOT_ALLOWED)
                for key in accepted
                if not grant.allows(key)
            ]
            accepted = [key for key in accepted if grant.allows(key)]
        self._check_limit(command.message_id, accepted)
        since = command.since if self.delivery.can_resume(command.since) else None
        self.has_asked = self.has_asked or bool(accepted)
        self.delivery.add(accepted, since, wants_snapshot=command.wants_snapshot)
        self._set_interval(command.min_interval_ms)
        return self._ack(
            command.message_id,
            "subscribe",
            accepted,
            [replace(r, key=names.get(r.key, r.key)).to_wire() for r in rejected],
            min_interval_ms=self.delivery.interval_ms,
            resumed=since is not None and command.wants_snapshot,
            **_told(codes),
            **self._members(accepted),
        )

    def _members(self, keys: Sequence[str]) -> dict[str, Any]:
        members = self.delivery.members_of(keys)
        if not members:
            return {}
        return {"members": members, "issues": self.delivery.issues.digest}

    def _resolve(self, keys: Sequence[str]) -> dict[str, str]:
        """Return the ISINs of those keys that are codes of the issue list."""
        isin_of = self.delivery.issues.isin_of
        found = ((k, isin_of(k)) for k in keys if len(k) < ISIN_CHARS)
        return {key: isin for key, isin in found if isin is not None}

    def _set_interval(self, wanted_ms: int) -> None:
        least_ms = 0 if self.grant is None else self.grant.min_interval_ms
        self.delivery.set_interval(max(wanted_ms, least_ms))

    def _unsubscribe(self, command: Unsubscribe) -> bytes:
        held = set(self.delivery.keys)
        codes = self._resolve(command.keys)
        dropped = list(dict.fromkeys(codes.get(key, key) for key in command.keys))
        dropped = [key for key in dropped if key in held]
        rejected = [
            {"key": key, "code": "unknown_key", "message": NOT_HELD}
            for key in command.keys
            if codes.get(key, key) not in held
        ]
        self.delivery.drop(dropped)
        return self._ack(
            command.message_id, "unsubscribe", dropped, rejected, **_told(codes)
        )

    def _check_limit(self, message_id: MessageId, keys: Sequence[str]) -> None:
        limit = self._settings.max_keys
        more = len(set(keys).difference(self.delivery.keys))
        if len(self.delivery.keys) + more > limit:
            raise BadMessage(
                "key_limit",
                f"{limit} keys a connection; you hold {len(self.delivery.keys)} "
                f"and asked for {more} more",
                message_id,
            )

    def _ack(
        self,
        message_id: MessageId,
        op: str,
        accepted: Collection[str],
        rejected: list[dict[str, str]],
        **granted: Any,
    ) -> bytes:
        return frames.ack_frame(
            message_id, op, accepted, rejected, len(self.delivery.keys), **granted
        )


def _told(codes: dict[str, str]) -> dict[str, dict[str, str]]:
    return {"codes": codes} if codes else {}
