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
from gateway.admission.work import (
    ROWS_A_BAR,
    SNAPSHOT_SHARE,
    SnapshotBudget,
    WorkBudget,
    WorkRefused,
    message_rows,
    payers_of,
)
from gateway.protocol.bar_keys import BarKey, bars_read, is_bar_key, read_bar_key
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
from gateway.protocol.trade_keys import (
    MOST_FOLLOWED,
    is_trades_key,
    read_trades_key,
)
from gateway.settings import GatewaySettings
from gateway.stream import frames
from gateway.stream.bars.bar_delivery import BarDelivery, Waker
from gateway.stream.bars.bar_desk import BarDesk
from gateway.stream.bars.bar_update import BarPosition
from gateway.stream.counters import Counters
from gateway.stream.delivery import Delivery
from gateway.stream.paced_source import PacedSource, PacedSources
from gateway.stream.trades.trade_delivery import TradeDelivery
from gateway.stream.trades.trade_desk import TradeDesk
from ingest.instrument_table.known_instruments import has_members
from ingest.series import code_of
from ingest.trade import ISIN_CHARS
from tickthrottle_client.tick_v1 import ALL, TRADES, CloseCode

NOT_ALLOWED = "your token does not allow it"

NOT_HELD = "you do not hold it"

MOST_LIMITED = 100
"""This many messages in a row that come too fast end the connection, with 4429."""

MOST_SNAPSHOT_BARS = 10_000
"""So many bars one subscribe may ask for."""

MOST_READ_BARS = 100_000
"""So many bars are read for them (``bar_keys.bars_read``)."""

CHARGED_FROM = 100
"""Snapshots of fewer rows are nothing to a stream: what it may say bounds them."""

MOST_BAD = 20
"""This many bad messages in a row end the connection, with 4500."""


class ClientCommands:
    """Answers a client's messages; ``delivery`` does what they ask for.

    ``answer`` never raises on what a client may send; ``ending`` is set when the
    connection is to be closed after it. A client holds ``max_keys`` keys at most.
    ``bars`` is None until it asks for bars, ``trades`` until it asks for every trade
    of an instrument. What it has sent is charged to ``address``,
    and to the holder of its token.
    """

    __slots__ = (
        "_bad",
        "_bar_desk",
        "_bucket",
        "_counters",
        "_limited",
        "_paced",
        "_paces",
        "_settings",
        "_snapshots",
        "_tokens",
        "_trade_desk",
        "_waker",
        "_work",
        "address",
        "bars",
        "delivery",
        "ending",
        "expires_s",
        "grant",
        "has_asked",
        "trades",
    )

    def __init__(
        self,
        delivery: Delivery,
        settings: GatewaySettings,
        counters: Counters,
        now_s: float,
        tokens: TokenReader | None = None,
        bar_desk: BarDesk | None = None,
        waker: Waker | None = None,
        work: WorkBudget | None = None,
        paces: PacedSources | None = None,
        address: str = "",
        trade_desk: TradeDesk | None = None,
    ) -> None:
        self.delivery = delivery
        self.trades: TradeDelivery | None = None
        self._trade_desk = trade_desk
        self.address = address
        self._work = work
        self._paces = paces
        self._paced: PacedSource | None = None
        self._snapshots: SnapshotBudget | None = None
        self.bars: BarDelivery | None = None
        self._bar_desk = bar_desk
        self._waker = waker
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
            rate = self._settings.messages_per_second
            reason = f"more than {rate:g} messages a second"
            return self._put_off(WorkRefused(reason, wait_ms), read_id(text))
        try:
            command = parse(text)
            if not isinstance(command, Auth):
                # Who cannot even show a token could never be anybody else.
                self._check_work(now_s)
            self._charge(message_rows(text), now_s)
            answer = self._carry_out(command, now_s, now_us)
            self._limited = self._bad = 0
            return answer
        except WorkRefused as refusal:
            self._counters.work_refused += 1
            return self._put_off(refusal, read_id(text))
        except BadMessage as error:
            self._limited = 0
            self._counters.messages_refused += 1
            self._bad += 1
            if self._bad >= MOST_BAD:
                self._end(CloseCode.BAD_MESSAGES, "too many bad messages")
            return frames.error_frame(error.code, str(error), error.message_id)

    def _put_off(self, refusal: WorkRefused, message_id: MessageId) -> bytes:
        self._limited += 1
        if self._limited >= MOST_LIMITED:
            self._end(CloseCode.TOO_MANY_MESSAGES, "too many messages")
        return put_off_frame(refusal, message_id)

    def _carry_out(self, command: Command, now_s: float, now_us: int) -> bytes:
        if isinstance(command, Auth):
            return self._authenticate(command, now_s, now_us)
        match command:
            case Subscribe():
                return self.subscribe(command, now_s)
            case Unsubscribe():
                return self._unsubscribe(command)
            case ListKeys(message_id):
                return self._ack(message_id, "list", self._held(), [])
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
        lost += self._lose_bars(grant)
        lost += self._lose_trades(grant)
        if self._paces is not None:
            interval_ms, now_ms = grant.min_interval_ms, now_us // 1_000
            self._paced = self._paces.lead(self.delivery, interval_ms, now_ms)
        self._set_interval(self.delivery.interval_ms)
        return lost

    def _lose_bars(self, grant: TokenGrant) -> list[str]:
        if self.bars is None:
            return []
        lost = [key for key in self.bars.key_set.keys if not grant.allows(key.isin)]
        self.bars.drop(lost)
        return list(map(str, lost))

    def _lose_trades(self, grant: TokenGrant) -> list[str]:
        if self.trades is None:
            return []
        lost = [isin for isin in self.trades.isins if not grant.allows_trades(isin)]
        self.trades.drop(lost)
        return [TRADES + isin for isin in lost]

    def _held(self) -> tuple[str, ...]:
        """Return every key that is held."""
        bars = () if self.bars is None else self.bars.keys
        trades = () if self.trades is None else self.trades.keys
        return (*self.delivery.keys, *bars, *trades)

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
            self._held(),
            [Rejection(key, "not_allowed", NOT_ALLOWED).to_wire() for key in lost],
            expires=grant.expires_us,
            min_interval_ms=self.delivery.interval_ms,
        )

    def subscribe(self, command: Subscribe, now_s: float) -> bytes:
        """Add keys, ask for their snapshot and return the ack.

        Raises BadMessage, having changed nothing, if that is more than the limit, and
        WorkRefused if the client has been sent as much as it may.
        """
        grant = self.grant
        if grant is None:
            raise BadMessage(
                "not_allowed", "show a token first, with auth", command.message_id
            )
        if command.wants_snapshot:
            self._check_work(now_s, SNAPSHOT_SHARE if is_long(command.keys) else 1)
            if self._snapshots is not None:
                self._snapshots.check(now_s)
        # First without looking at the keys: checking thousands of them takes time.
        if len(command.keys) > self._settings.max_keys:
            self._check_limit(command.message_id, command.keys)
        of_bars = tuple(key for key in command.keys if is_bar_key(key))
        of_trades = tuple(key for key in command.keys if is_trades_key(key))
        wanted = command.keys
        if of_bars or of_trades:
            others = {*of_bars, *of_trades}
            wanted = tuple(key for key in wanted if key not in others)
        bar_keys, bar_codes, bars_rejected = self._read_bar_keys(of_bars, grant)
        traded, trade_codes, trades_rejected = self._read_trade_keys(of_trades, grant)
        codes = self._resolve(wanted)
        # What each key was called when it was asked for.
        names, keys = {}, wanted
        if codes:
            names = {codes.get(key, key): key for key in reversed(keys)}
            keys = tuple(reversed(names))
        accepted, rejected = split_keys(keys, self.delivery.instruments)
        if grant.keys is not None:
            rejected += [
                Rejection(key, "not_allowed", NOT_ALLOWED)
                for key in accepted
                if not grant.allows(key)
            ]
            accepted = [key for key in accepted if grant.allows(key)]
        trade_keys = [TRADES + isin for isin in traded]
        every = (*accepted, *map(str, bar_keys), *trade_keys)
        self._check_limit(command.message_id, every)
        bars_read = self._check_snapshot(command, bar_keys)
        since = command.since if self.delivery.can_resume(command.since) else None
        self.has_asked = self.has_asked or bool(accepted or bar_keys or traded)
        rows = self.delivery.add(accepted, since, wants_snapshot=command.wants_snapshot)
        self._add_bars(bar_keys, command, bars_read)
        self._add_trades(traded)
        if command.wants_snapshot:
            self._charge_snapshot(rows + ROWS_A_BAR * bars_read, now_s)
        self._set_interval(command.min_interval_ms)
        told = [replace(r, key=names.get(r.key, r.key)) for r in rejected]
        # What a code stands for is told to those who may have the instrument.
        may_know = set(accepted)
        codes = {code: isin for code, isin in codes.items() if isin in may_know}
        return self._ack(
            command.message_id,
            "subscribe",
            every,
            [r.to_wire() for r in (*told, *bars_rejected, *trades_rejected)],
            min_interval_ms=self.delivery.interval_ms,
            resumed=since is not None and command.wants_snapshot,
            **_told(codes | bar_codes | trade_codes),
            **self._members(accepted, now_s),
        )

    def _read_bar_keys(
        self, keys: Sequence[str], grant: TokenGrant
    ) -> tuple[list[BarKey], dict[str, str], list[Rejection]]:
        """Return the keys of bars that may be had, what codes among them stand for."""
        accepted: dict[BarKey, None] = {}
        codes: dict[str, str] = {}
        rejected: list[Rejection] = []
        for text in keys:
            key = read_bar_key(text, self.delivery.instruments)
            if isinstance(key, Rejection):
                rejected.append(key)
            elif not grant.allows(key.isin):
                rejected.append(Rejection(text, "not_allowed", NOT_ALLOWED))
            elif self._bar_desk is None:
                rejected.append(Rejection(text, "unknown_key", "bars are not served"))
            else:
                accepted[key] = None
                if str(key) != text:
                    codes[text] = str(key)
        return list(accepted), codes, rejected

    def _read_trade_keys(
        self, keys: Sequence[str], grant: TokenGrant
    ) -> tuple[list[str], dict[str, str], list[Rejection]]:
        """Return the instruments whose trades may be followed, and what codes are."""
        accepted: dict[str, None] = {}
        codes: dict[str, str] = {}
        rejected: list[Rejection] = []
        held = () if self.trades is None else self.trades.isins
        for text in dict.fromkeys(keys):
            isin = read_trades_key(text, self.delivery.instruments)
            if isinstance(isin, Rejection):
                rejected.append(isin)
            elif not grant.allows_trades(isin):
                rejected.append(Rejection(text, "not_allowed", NOT_ALLOWED))
            elif self._trade_desk is None or self._waker is None:
                rejected.append(Rejection(text, "not_served", "trades are not served"))
            elif len({*held, *accepted, isin}) > MOST_FOLLOWED:
                rule = f"the trades of {MOST_FOLLOWED} instruments a connection"
                rejected.append(Rejection(text, "not_allowed", rule))
            else:
                accepted[isin] = None
                if text != TRADES + isin:
                    codes[text] = TRADES + isin
        return list(accepted), codes, rejected

    def _add_trades(self, isins: Sequence[str]) -> None:
        if not isins or self._trade_desk is None or self._waker is None:
            return
        if self.trades is None:
            self.trades = TradeDelivery(self._trade_desk, self._waker)
        self.trades.add(isins)

    def _check_work(self, now_s: float, share: float = 1) -> None:
        """Return if more may be worked out for the client. Raises WorkRefused."""
        if self._work is not None:
            self._work.check(self.payers, now_s, share)

    def _charge(self, rows: int, now_s: float) -> None:
        if self._work is not None:
            self._work.charge(self.payers, rows, now_s)

    def _charge_snapshot(self, rows: int, now_s: float) -> None:
        self._charge(rows, now_s)
        if rows >= CHARGED_FROM:
            self._snapshots = self._snapshots or SnapshotBudget()
            self._snapshots.charge(rows, now_s)

    @property
    def payers(self) -> tuple[str, ...]:
        """Against whom work is counted."""
        return payers_of(self.address, self.grant.holder if self.grant else "")

    def _check_snapshot(self, command: Subscribe, keys: Sequence[BarKey]) -> int:
        """Return how many bars are read for the snapshot. Raises BadMessage."""
        if not keys or not command.wants_snapshot:
            return 0
        desk, last = self._bar_desk, command.last
        instruments = desk.instruments() if desk else 0
        read = sum(instruments if k.isin == ALL else bars_read(k, last) for k in keys)
        if read > MOST_READ_BARS:
            rule = f"{read} bars are read for that, {MOST_READ_BARS} at most"
            raise BadMessage("bad_request", f"last: {rule}", command.message_id)
        count = command.last * len(keys)
        is_whole = command.last > 1 and any(key.isin == ALL for key in keys)
        if is_whole or count > MOST_SNAPSHOT_BARS:
            rule = (
                "only 1 for all instruments"
                if is_whole
                else f"{count} bars in all, {MOST_SNAPSHOT_BARS} at most"
            )
            raise BadMessage("bad_request", f"last: {rule}", command.message_id)
        return read

    def _add_bars(
        self, keys: Sequence[BarKey], command: Subscribe, bars_read: int
    ) -> None:
        desk, waker = self._bar_desk, self._waker
        if not keys or desk is None or waker is None:
            return
        if self.bars is None:
            self.bars = BarDelivery(desk, waker)
            self.bars.paced = self._paced
        since = command.bars_since
        position = None if since is None else BarPosition(since.epoch, since.sequence)
        last = command.last if command.wants_snapshot else 0
        self.bars.add(keys, last, position, bars_read)

    def _members(self, keys: Sequence[str], now_s: float) -> dict[str, Any]:
        members = self.delivery.members_of(keys)
        if not members:
            return {}
        self._charge(sum(map(len, members.values())), now_s)
        return {"members": members, "instruments": self.delivery.instruments.digest}

    def _resolve(self, keys: Sequence[str]) -> dict[str, str]:
        """Return the ISINs of those keys that are codes of the instrument list."""
        isin_of = self.delivery.instruments.isin_of
        found = ((k, isin_of(k)) for k in keys if len(code_of(k)) < ISIN_CHARS)
        codes = {key: isin for key, isin in found if isin is not None}
        for text in filter(is_bar_key, keys):
            key = read_bar_key(text, self.delivery.instruments)
            if isinstance(key, BarKey) and str(key) != text:
                codes[text] = str(key)
        for text in filter(is_trades_key, keys):
            isin = read_trades_key(text, self.delivery.instruments)
            if isinstance(isin, str) and TRADES + isin != text:
                codes[text] = TRADES + isin
        return codes

    def _set_interval(self, wanted_ms: int) -> None:
        least_ms = 0 if self.grant is None else self.grant.min_interval_ms
        self.delivery.set_interval(max(wanted_ms, least_ms))
        if self.bars is not None:
            self.bars.interval_ms = self.delivery.interval_ms
            self.bars.paced = self._paced

    def _unsubscribe(self, command: Unsubscribe) -> bytes:
        held = set(self._held())
        codes = self._resolve(command.keys)
        dropped = list(dict.fromkeys(codes.get(key, key) for key in command.keys))
        dropped = [key for key in dropped if key in held]
        rejected = [
            {"key": key, "code": "unknown_key", "message": NOT_HELD}
            for key in command.keys
            if codes.get(key, key) not in held
        ]
        others = (key for key in dropped if not is_bar_key(key))
        self.delivery.drop([key for key in others if not is_trades_key(key)])
        if self.trades is not None:
            of_trades = filter(is_trades_key, dropped)
            self.trades.drop([key.removeprefix(TRADES) for key in of_trades])
        if self.bars is not None:
            named = set(dropped)
            self.bars.drop([k for k in self.bars.key_set.keys if str(k) in named])
        codes = {code: key for code, key in codes.items() if key in held}
        return self._ack(
            command.message_id, "unsubscribe", dropped, rejected, **_told(codes)
        )

    def _check_limit(self, message_id: MessageId, keys: Sequence[str]) -> None:
        limit = self._settings.max_keys
        held = self._held()
        more = len(set(keys).difference(held))
        if len(held) + more > limit:
            raise BadMessage(
                "key_limit",
                f"{limit} keys a connection; you hold {len(held)} "
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
            message_id, op, accepted, rejected, len(self._held()), **granted
        )


def is_long(keys: Sequence[str]) -> bool:
    """Say whether the snapshot of these keys may have very many rows."""
    stand_for_many = (key == ALL or has_members(key) for key in keys)
    return len(keys) >= CHARGED_FROM or any(stand_for_many)


def put_off_frame(refusal: WorkRefused, message_id: MessageId = None) -> bytes:
    """Build the answer to what is to be asked for again later."""
    return frames.error_frame(
        "rate_limited", refusal.reason, message_id, retry_after_ms=refusal.wait_ms
    )


def _told(codes: dict[str, str]) -> dict[str, dict[str, str]]:
    return {"codes": codes} if codes else {}
