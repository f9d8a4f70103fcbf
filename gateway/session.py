"""One client's session: the keys it holds and the answer to each message.

Does no I/O: text in, frames out; time is an argument.
"""

from collections.abc import Collection, Sequence

from gateway import frames
from gateway.board import Board, Position
from gateway.counters import Counters
from gateway.limits import TokenBucket
from gateway.mailbox import Mailbox, Merged, SnapshotPiece
from gateway.protocol import (
    Auth,
    BadMessage,
    CloseCode,
    Command,
    ListKeys,
    MessageId,
    Rejection,
    Since,
    Subscribe,
    Unsubscribe,
    parse,
    read_id,
    split_keys,
)
from gateway.settings import GatewaySettings
from gateway.tokens import EVERYTHING, Grant, TokenExpired, TokenReader, TokenRefused
from gateway.views import ALL, Views

NOT_ALLOWED = "your token does not allow it"

NOT_HELD = "you do not hold it"

MOST_LIMITED = 100
"""So many messages in a row that come too fast end the connection, with 4429."""

MOST_BAD = 20
"""So many bad messages in a row end the connection, with 4500."""

LONGEST_INTERVAL_MS = 60_000
"""A client that asks for fewer updates than one in so long is granted this."""


AHEAD_MOST = 30
"""A client may have seen so many windows more than this gateway, from another one."""


class Session:
    """Answers a client's messages and knows what it has to be sent.

    ``answer`` never raises on what a client may send; ``ending`` is set when the
    connection is to be closed after it. Bounded by ``max_keys`` and,
    for a client that watches everything, by the number of issues.
    """

    __slots__ = (
        "_bad",
        "_board",
        "_bucket",
        "_counters",
        "_gathered_window",
        "_interval_ms",
        "_keys",
        "_limited",
        "_mailbox",
        "_sent_interval",
        "_settings",
        "_tokens",
        "_views",
        "_waiting",
        "ending",
        "expires_s",
        "grant",
        "has_asked",
    )

    def __init__(
        self,
        board: Board,
        settings: GatewaySettings,
        counters: Counters,
        views: Views,
        now_s: float,
        tokens: TokenReader | None = None,
    ) -> None:
        self._views = views
        self._board = board
        self._settings = settings
        self._counters = counters
        self._bucket = TokenBucket(settings.ops_per_second, settings.ops_burst, now_s)
        # In order, as a tuple: a set of thirty is two thirds of what a client costs.
        self._keys: tuple[str, ...] = ()
        self._mailbox = Mailbox()
        # Keys of a client that has seen more than this gateway, and how much.
        self._waiting: dict[str, Since] = {}
        self._interval_ms = board.window_ms
        self._sent_interval = 0
        # The newest window when it was last sent what the board held at that moment.
        self._gathered_window: int | None = None
        self._limited = self._bad = 0
        self.has_asked = False
        self.ending: tuple[CloseCode, str] | None = None
        self._tokens = tokens
        self.grant: Grant | None = EVERYTHING if tokens is None else None
        self.expires_s: float | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that are held, in order."""
        return self._keys

    @property
    def pending(self) -> int:
        """How many issues the client has not been sent yet."""
        return self._mailbox.pending

    @property
    def is_owed(self) -> bool:
        """Whether something is to be sent now: what may wait is not owed yet."""
        return not self._mailbox.is_empty and self._is_due()

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
            rate = self._settings.ops_per_second
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
                return self._ack(message_id, "list", self._keys, [])
        return frames.pong_frame(command.message_id, now_us)

    def _end(self, code: CloseCode, reason: str) -> None:
        if self.ending is None:
            self._counters.clients_abusive_closed += 1
            self.ending = (code, reason)

    def admit(self, grant: Grant, now_s: float, now_us: int) -> list[str]:
        """Let the client have what is granted; return the keys it loses."""
        self.grant = grant
        if grant.expires_us is not None:
            self.expires_s = now_s + (grant.expires_us - now_us) / 1e6
        lost = sorted(key for key in self._keys if not grant.allows(key))
        self._watch(set(self._keys).difference(lost))
        self._set_interval(self._interval_ms)
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
            self._keys,
            [Rejection(key, "not_allowed", NOT_ALLOWED).to_wire() for key in lost],
            expires=grant.expires_us,
            min_interval_ms=self._interval_ms,
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
        accepted, rejected = split_keys(command.keys)
        if grant.keys is not None:
            rejected += [
                Rejection(key, "not_allowed", NOT_ALLOWED)
                for key in accepted
                if not grant.allows(key)
            ]
            accepted = [key for key in accepted if grant.allows(key)]
        self._check_limit(command.message_id, accepted)
        since = command.since if self._can_resume(command.since) else None
        for key in accepted:
            self._waiting.pop(key, None)
        is_ahead = since is not None and since.offset > self._board.position.offset
        if since is not None and is_ahead:
            self._waiting.update(dict.fromkeys(accepted, since))
        self.has_asked = self.has_asked or bool(accepted)
        self._watch({*self._keys, *accepted})
        self._set_interval(command.min_interval_ms)
        if command.wants_snapshot and accepted and not is_ahead:
            self._mailbox.request_snapshot(
                self._stored(accepted, since), self._board.complete.offset
            )
        return self._ack(
            command.message_id,
            "subscribe",
            accepted,
            [rejection.to_wire() for rejection in rejected],
            min_interval_ms=self._interval_ms,
            resumed=since is not None and command.wants_snapshot,
        )

    def offer(self, update: frames.Update) -> bool:
        """Take in an update already on the board; True if something is to be sent."""
        self._mailbox.offer(update)
        if self._waiting:
            self._end_waiting()
        return not self._mailbox.is_empty and self._is_due()

    def close(self) -> None:
        """Watch nothing any more."""
        self._waiting.clear()
        self._watch(())

    def restart(self) -> None:
        """Send everything held anew: another epoch has begun."""
        self._waiting.clear()
        self._watch(self._keys)
        if self._keys:
            self._mailbox.restart(
                self._stored(self._keys, None), self._board.complete.offset
            )

    def next_frame(self) -> bytes | None:
        """Return the next snapshot or update frame, None if there is nothing to send.

        Values are those of the board at this moment. Snapshots are sent at once,
        updates once in the interval that was granted.
        """
        mailbox = self._mailbox
        while not mailbox.is_empty and self._is_due():
            due = mailbox.take(self._settings.snapshot_items)
            if isinstance(due, SnapshotPiece):
                self._gathered_window = self._board.position.window
                return self._snapshot_frame(due)
            self._sent_interval = self._interval()
            if isinstance(due, frames.Update):
                return due.frame(mailbox.view)
            if due is not None:
                self._gathered_window = self._board.position.window
                return self._merged_frame(due)
        return None

    def position(self) -> Position:
        """Return the position up to which the client was sent everything."""
        here = self._board.complete
        if self._mailbox.is_empty:
            return here
        return Position(here.epoch, self._mailbox.resume_offset, here.window)

    def resume_position(self) -> Position | None:
        """Return ``position``, None while a snapshot is under way."""
        return None if self._mailbox.is_snapshot_due else self.position()

    def _set_interval(self, wanted_ms: int) -> None:
        """Grant whole windows; all who have the same interval are sent at one time."""
        window_ms = self._board.window_ms
        least_ms = self.grant.min_interval_ms if self.grant is not None else 0
        windows = -(-min(max(wanted_ms, least_ms), LONGEST_INTERVAL_MS) // window_ms)
        self._interval_ms = max(1, windows) * window_ms
        self._sent_interval = self._interval()

    def _interval(self) -> int:
        return (self._board.position.window or 0) // self._interval_ms

    def _is_due(self) -> bool:
        board = self._board
        if self._mailbox.is_snapshot_due:
            return True
        # A further part of a window may hold issues that were gathered in it already.
        if board.is_in_parts and self._gathered_window == board.position.window:
            return False
        return (
            self._interval_ms <= board.window_ms
            or self._interval() != self._sent_interval
        )

    def _unsubscribe(self, command: Unsubscribe) -> bytes:
        held = set(self._keys)
        dropped = [key for key in command.keys if key in held]
        rejected = [
            {"key": key, "code": "unknown_key", "message": NOT_HELD}
            for key in command.keys
            if key not in held
        ]
        for key in dropped:
            self._waiting.pop(key, None)
        self._watch(held.difference(dropped))
        return self._ack(command.message_id, "unsubscribe", dropped, rejected)

    def _check_limit(self, message_id: MessageId, keys: Sequence[str]) -> None:
        limit = self._settings.max_keys
        more = len(set(keys).difference(self._keys))
        if len(self._keys) + more > limit:
            raise BadMessage(
                "key_limit",
                f"{limit} keys a connection; you hold {len(self._keys)} "
                f"and asked for {more} more",
                message_id,
            )

    def _can_resume(self, since: Since | None) -> bool:
        here = self._board.position
        return (
            since is not None
            and since.epoch == here.epoch
            and since.offset <= here.offset + AHEAD_MOST
        )

    def _end_waiting(self) -> None:
        """Serve the keys of a client that had seen more than this gateway until now.

        Another gateway was a little ahead: what this one had would have been older.
        """
        here = self._board.position.offset
        ready = {k: s for k, s in self._waiting.items() if s.offset <= here}
        if not ready:
            return
        for key in ready:
            del self._waiting[key]
        self._watch(self._keys)
        for since in set(ready.values()):
            keys = [key for key in ready if ready[key] == since]
            self._mailbox.request_snapshot(
                self._stored(keys, since), self._board.complete.offset
            )

    def _stored(self, keys: Collection[str], since: Since | None) -> list[str]:
        """Return the issues among ``keys`` that have a value newer than ``since``."""
        if ALL in keys:
            return self._board.changed_since(since.offset if since else -1)
        return [
            key
            for key in keys
            if (row := self._board.get(key)) is not None
            and (since is None or row.offset > since.offset)
        ]

    def _watch(self, keys: Collection[str]) -> None:
        self._keys = tuple(sorted(keys))
        ready = set(keys).difference(self._waiting) if self._waiting else keys
        view = self._views.move(self._mailbox.view, ready)
        if view.isins == self._keys:
            # Two lists of thirty keys would be a tenth of what a client costs.
            self._keys = view.isins
        self._mailbox.watch(view)

    def _snapshot_frame(self, piece: SnapshotPiece) -> bytes:
        here = self._board.position
        rows = (self._board.get(isin) for isin in piece.isins)
        return frames.snapshot_frame(
            Position(here.epoch, piece.offset, here.window),
            [row.body for row in rows if row is not None],
            final=piece.final,
        )

    def _merged_frame(self, merged: Merged) -> bytes:
        self._counters.windows_merged += max(0, merged.windows - 1)
        rows = ((self._board.get(isin), n) for isin, n in merged.trades.items())
        return frames.update_frame(
            self._board.complete,
            merged.windows,
            [frames.encode_row(row.body, n) for row, n in rows if row is not None],
        )

    def _ack(
        self,
        message_id: MessageId,
        op: str,
        accepted: Collection[str],
        rejected: list[dict[str, str]],
        **granted: int | None,
    ) -> bytes:
        return frames.ack_frame(
            message_id, op, accepted, rejected, len(self._keys), **granted
        )
