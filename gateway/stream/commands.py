"""What one client says and how it is answered: text in, frames out. Pure."""

from collections.abc import Callable, Collection, Iterable, Sequence, Set
from dataclasses import InitVar, dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

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
    STREAM_BURST_ROWS,
    STREAM_ROWS_PER_S,
    WorkBudget,
    WorkRefused,
    check_snapshots,
    message_rows,
    payers_of,
)
from gateway.positions.field_sets import FieldSets, TooManySets, UnknownField
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
from gateway.protocol.prefixed_keys import (
    MOST_FOLLOWED,
    BarKey,
    TradesKey,
    bars_read,
    read_bar_key,
    read_trades_key,
    split_kinds,
)
from gateway.settings import GatewaySettings
from gateway.stream.bars.bar_delivery import BarDelivery, BarDesk
from gateway.stream.counters import Counters
from gateway.stream.delivery import Delivery
from gateway.stream.frames import message_frame
from gateway.stream.paced_source import PacedSource, PacedSources
from gateway.stream.statuses.status_delivery import StatusDelivery, StatusDesk
from gateway.stream.trade_delivery import TradeDelivery, TradeDesk
from ingest.instrument_table.known_instruments import Instruments, has_members
from ingest.series import code_of
from ingest.trade import ISIN_CHARS
from tickthrottle_client.tick_v1 import ALL, CloseCode

NOT_ALLOWED = "your token does not allow it"

NOT_HELD = "you do not hold it"

MOST_LIMITED = 100
"""This many messages in a row that come too fast end the connection, with 4429."""

MOST_SNAPSHOT_BARS = 10_000
"""So many bars one subscribe may ask for."""

MOST_READ_BARS = 100_000
"""So many bars are read for them (``prefixed_keys.bars_read``)."""

CHARGED_FROM = 100
"""Snapshots of fewer rows are nothing to a stream: what it may say bounds them."""

NAMES_A_ROW = 8
"""So many names of numbers are as much work as a row."""

MOST_BAD = 20
"""This many bad messages in a row end the connection, with 4500."""

K = TypeVar("K", BarKey, TradesKey)


@dataclass(frozen=True, slots=True)
class Shared:
    """What the commands of all clients share. Without ``tokens`` none is asked for."""

    settings: GatewaySettings
    counters: Counters
    tokens: TokenReader | None
    work: WorkBudget
    paces: PacedSources
    bar_desk: BarDesk
    trade_desk: TradeDesk
    status_desk: StatusDesk
    field_sets: FieldSets = field(default_factory=FieldSets)


@dataclass(slots=True)
class _Answers:
    """What an ack says of keys: what codes among them stand for, and why not."""

    codes: dict[str, str] = field(default_factory=dict)
    rejected: list[Rejection] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class ClientCommands:
    """Answers a client's messages; ``delivery`` does what they ask for.

    ``answer`` never raises on what a client may send; ``ending`` is set when the
    connection is to be closed after it. A client holds ``max_keys`` keys at most.
    ``bars`` is None until it asks for bars, ``trades`` until it asks for every trade of
    an instrument, ``statuses`` until it asks for an instrument; all have it sent by
    ``wake``. What it has sent is charged to ``address``, and to its token's holder.
    """

    delivery: Delivery
    _shared: Shared
    _wake: Callable[[], None]
    now_s: InitVar[float]
    address: str = ""
    bars: BarDelivery | None = None
    trades: TradeDelivery | None = None
    statuses: StatusDelivery | None = None
    grant: TokenGrant | None = None
    expires_s: float | None = None
    ending: tuple[CloseCode, str] | None = None
    has_asked: bool = False
    _paced: PacedSource | None = None
    _snapshots: TokenBucket | None = None
    _limited: int = 0
    _bad: int = 0
    _bucket: TokenBucket = field(init=False)

    def __post_init__(self, now_s: float) -> None:
        """Grant everything where no tokens are asked for."""
        settings = self._shared.settings
        self._bucket = TokenBucket(
            settings.messages_per_second, settings.message_burst, now_s
        )
        if self._shared.tokens is None:
            self.grant = EVERYTHING

    def answer(self, text: str, now_s: float, now_us: int) -> bytes:
        """Carry out one message and return the frame that answers it.

        ``now_s`` is a clock that does not go back, ``now_us`` the time of day.
        """
        counters = self._shared.counters
        wait_ms = self._bucket.take(now_s)
        if wait_ms:
            counters.messages_rate_limited += 1
            rate = self._shared.settings.messages_per_second
            reason = f"more than {rate:g} messages a second"
            return self._put_off(WorkRefused(reason, wait_ms), read_id(text))
        try:
            command = parse(text)
            if not isinstance(command, Auth):
                # Who cannot even show a token could never be anybody else.
                self._shared.work.check(self.payers, now_s)
            self._charge(message_rows(text), now_s)
            answer = self._carry_out(command, now_s, now_us)
            self._limited = self._bad = 0
            return answer
        except WorkRefused as refusal:
            counters.work_refused += 1
            return self._put_off(refusal, read_id(text))
        except BadMessage as error:
            self._limited = 0
            counters.messages_refused += 1
            self._bad += 1
            if self._bad >= MOST_BAD:
                self._end(CloseCode.BAD_MESSAGES, "too many bad messages")
            return refusal_frame(error)

    def admit(self, grant: TokenGrant, now_s: float, now_us: int) -> list[str]:
        """Let the client have what is granted; return the keys it loses."""
        self.grant = grant
        if grant.expires_us is not None:
            self.expires_s = now_s + (grant.expires_us - now_us) / 1e6
        lost = [key for key in self.delivery.keys if not grant.allows(key)]
        self.delivery.drop(lost)
        if self.bars is not None:
            bars = [key for key in self.bars.key_set.keys if not grant.allows(key.isin)]
            self.bars.drop(bars)
            lost += map(str, bars)
        if self.trades is not None:
            isins = self.trades.isins
            trades = [TradesKey(i) for i in isins if not grant.allows_trades(i)]
            self.trades.drop([key.isin for key in trades])
            lost += map(str, trades)
        interval_ms, now_ms = grant.min_interval_ms, now_us // 1_000
        self._paced = self._shared.paces.lead(self.delivery, interval_ms, now_ms)
        if self.statuses is not None:
            self.statuses.is_bare = self._paced is not None
        self._set_interval(self.delivery.interval_ms)
        return lost

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
            share = SNAPSHOT_SHARE if is_long(command.keys) else 1
            self._shared.work.check(self.payers, now_s, share)
            if self._snapshots is not None:
                check_snapshots(self._snapshots, now_s)
        # First without looking at the keys: checking thousands of them takes time.
        if len(command.keys) > self._shared.settings.max_keys:
            self._check_limit(command.message_id, command.keys)
        plain, of_bars, of_trades = split_kinds(command.keys)
        prefixed = _Answers()
        refuse_bars = partial(_refuse_bars, grant)
        bars = self._read(of_bars, read_bar_key, prefixed, refuse_bars)
        refuse_trades = partial(self._refuse_trades, grant)
        trades = self._read(of_trades, read_trades_key, prefixed, refuse_trades)
        codes = self._codes_of(plain)
        # What each key was called when it was asked for.
        names, keys = {}, plain
        if codes:
            names = {codes.get(key, key): key for key in reversed(plain)}
            keys = list(reversed(names))
        accepted, rejected = split_keys(keys, self.delivery.instruments)
        if grant.keys is not None:
            refused = [key for key in accepted if not grant.allows(key)]
            rejected += [Rejection(key, "not_allowed", NOT_ALLOWED) for key in refused]
            accepted = [key for key in accepted if grant.allows(key)]
        every = (*accepted, *map(str, bars), *map(str, trades))
        self._check_limit(command.message_id, every)
        bar_count = self._check_snapshot(command, bars)
        self._place(command)
        since = command.since if self.delivery.can_resume(command.since) else None
        self.delivery.chain(command.chain, since)
        self.has_asked = self.has_asked or bool(every)
        told = command.statuses_since
        already: Set[str] = frozenset()
        if told is not None and self.statuses is not None:
            already = self.statuses.held_after(told)
        rows = self.delivery.add(accepted, since, wants_snapshot=command.wants_snapshot)
        if accepted:
            rows += self._add_statuses(command, already)
        if bars:
            self._add_bars(bars, command, bar_count)
        if trades:
            if self.trades is None:
                self.trades = TradeDelivery(self._shared.trade_desk, self._wake)
            self.trades.add([key.isin for key in trades])
        if command.wants_snapshot:
            self._charge_snapshot(rows + ROWS_A_BAR * bar_count, now_s)
        self._set_interval(command.min_interval_ms)
        rejected = [replace(r, key=names.get(r.key, r.key)) for r in rejected]
        # What a code stands for is told to those who may have the instrument.
        may_know = set(accepted)
        codes = {code: isin for code, isin in codes.items() if isin in may_know}
        return self._ack(
            command.message_id,
            "subscribe",
            every,
            [*rejected, *prefixed.rejected],
            codes | prefixed.codes,
            min_interval_ms=self.delivery.interval_ms,
            resumed=since is not None and command.wants_snapshot,
            **self._members(accepted, now_s),
            **self._positions(accepted, now_s),
            **({} if command.chain is None else {"chain": True}),
        )

    def close(self) -> None:
        """Watch nothing any more."""
        if (before := self.delivery.place(None)) is not None:
            self._shared.field_sets.release(before)
        for delivery in (self.delivery, self.bars, self.trades, self.statuses):
            if delivery is not None:
                delivery.close()

    @property
    def payers(self) -> tuple[str, ...]:
        """Against whom work is counted."""
        return payers_of(self.address, self.grant.holder if self.grant else "")

    def _carry_out(self, command: Command, now_s: float, now_us: int) -> bytes:
        match command:
            case Auth():
                return self._authenticate(command, now_s, now_us)
            case Subscribe():
                return self.subscribe(command, now_s)
            case Unsubscribe():
                return self._unsubscribe(command)
            case ListKeys(message_id):
                return self._ack(message_id, "list", self._held())
        return message_frame("pong", command.message_id, server_time=now_us)

    def _put_off(self, refusal: WorkRefused, message_id: MessageId) -> bytes:
        self._limited += 1
        if self._limited >= MOST_LIMITED:
            self._end(CloseCode.TOO_MANY_MESSAGES, "too many messages")
        return put_off_frame(refusal, message_id)

    def _end(self, code: CloseCode, reason: str) -> None:
        if self.ending is None:
            self._shared.counters.clients_abusive_closed += 1
            self.ending = (code, reason)

    def _held(self) -> tuple[str, ...]:
        """Return every key that is held."""
        bars = () if self.bars is None else self.bars.keys
        trades = () if self.trades is None else self.trades.keys
        return (*self.delivery.keys, *bars, *trades)

    def _authenticate(self, command: Auth, now_s: float, now_us: int) -> bytes:
        message_id, tokens = command.message_id, self._shared.tokens
        if tokens is None:
            rule = "op: no authentication is configured"
            raise BadMessage("bad_request", rule, message_id)
        try:
            grant = tokens.read(command.token)
        except TokenRefused as error:
            code = CloseCode.TOKEN_REFUSED
            if isinstance(error, TokenExpired):
                code = CloseCode.TOKEN_EXPIRED
                self._shared.counters.clients_token_expired += 1
            else:
                self._shared.counters.clients_token_refused += 1
            self.ending = (code, str(error))
            raise BadMessage("not_allowed", str(error), message_id) from None
        lost = self.admit(grant, now_s, now_us)
        return self._ack(
            message_id,
            "auth",
            self._held(),
            [Rejection(key, "not_allowed", NOT_ALLOWED) for key in lost],
            expires=grant.expires_us,
            min_interval_ms=self.delivery.interval_ms,
        )

    def _read(
        self,
        keys: Sequence[str],
        read: Callable[[str, Instruments], K | Rejection],
        answers: _Answers,
        refuse: Callable[[K, Collection[K]], str | None],
    ) -> list[K]:
        """Return which keys are accepted; ``answers`` gets what is to be said of them.

        ``refuse`` says why a key may not be had beside those accepted before.
        """
        accepted: dict[K, None] = {}
        not_here = self._shared.settings.not_here
        for text in keys:
            key = read(text, self.delivery.instruments)
            if not_here is not None:
                key = Rejection(text, "not_served", not_here)
            if isinstance(key, Rejection):
                answers.rejected.append(key)
            elif rule := refuse(key, accepted):
                answers.rejected.append(Rejection(text, "not_allowed", rule))
            else:
                accepted[key] = None
                if str(key) != text:
                    answers.codes[text] = str(key)
        return list(accepted)

    def _refuse_trades(
        self, grant: TokenGrant, key: TradesKey, accepted: Collection[TradesKey]
    ) -> str | None:
        if not grant.allows_trades(key.isin):
            return NOT_ALLOWED
        held = () if self.trades is None else self.trades.isins
        if len({*held, *(other.isin for other in accepted), key.isin}) > MOST_FOLLOWED:
            return f"the trades of {MOST_FOLLOWED} instruments a connection"
        return None

    def _codes_of(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the ISINs of those keys that are codes of the instrument list."""
        isin_of = self.delivery.instruments.isin_of
        isins = ((key, isin_of(key)) for key in keys if len(code_of(key)) < ISIN_CHARS)
        return {key: isin for key, isin in isins if isin is not None}

    def _charge(self, rows: int, now_s: float) -> None:
        self._shared.work.charge(self.payers, rows, now_s)

    def _charge_snapshot(self, rows: int, now_s: float) -> None:
        self._charge(rows, now_s)
        if rows >= CHARGED_FROM:
            rate_per_s, burst = STREAM_ROWS_PER_S, STREAM_BURST_ROWS
            self._snapshots = self._snapshots or TokenBucket(rate_per_s, burst, now_s)
            self._snapshots.charge(rows, now_s)

    def _check_snapshot(self, command: Subscribe, keys: Sequence[BarKey]) -> int:
        """Return how many bars are read for the snapshot. Raises BadMessage."""
        if not keys or not command.wants_snapshot:
            return 0
        instruments, last = self._shared.bar_desk.instruments(), command.last
        read = sum(instruments if k.isin == ALL else bars_read(k, last) for k in keys)
        count, rule = last * len(keys), None
        if read > MOST_READ_BARS:
            rule = f"{read} bars are read for that, {MOST_READ_BARS} at most"
        elif last > 1 and any(key.isin == ALL for key in keys):
            rule = "only 1 for all instruments"
        elif count > MOST_SNAPSHOT_BARS:
            rule = f"{count} bars in all, {MOST_SNAPSHOT_BARS} at most"
        if rule is not None:
            raise BadMessage("bad_request", f"last: {rule}", command.message_id)
        return read

    def _add_bars(self, keys: Sequence[BarKey], command: Subscribe, count: int) -> None:
        if self.bars is None:
            self.bars = BarDelivery(self._shared.bar_desk, self._wake)
            self.bars.paced = self._paced
        last = command.last if command.wants_snapshot else 0
        self.bars.add(keys, last, command.bars_since, count)

    def _add_statuses(self, command: Subscribe, already: Set[str]) -> int:
        """Have statuses sent from now on; return how many rows the current ones are."""
        if self.statuses is None:
            desk = self._shared.status_desk
            self.statuses = StatusDelivery(desk, self.delivery, self._wake)
            self.statuses.is_bare = self._paced is not None
        if not command.wants_snapshot:
            return 0
        return self.statuses.request(command.statuses_since, already)

    def _members(self, keys: Sequence[str], now_s: float) -> dict[str, Any]:
        members = self.delivery.members_of(keys)
        if not members:
            return {}
        self._charge(sum(map(len, members.values())), now_s)
        return {"members": members, "instruments": self.delivery.instruments.digest}

    def _place(self, command: Subscribe) -> None:
        """Have rows come as the command says. Raises BadMessage, nothing changed."""
        sets, fields = self._shared.field_sets, None
        if command.fields:
            sets.learn(self.delivery.some_bodies, self.delivery.position())
            try:
                fields = sets.take(command.fields)
            except UnknownField as error:
                raise BadMessage(
                    "bad_request", str(error), command.message_id
                ) from None
            except TooManySets as error:
                raise BadMessage(
                    "field_limit", str(error), command.message_id
                ) from None
        if (before := self.delivery.place(fields)) is not None:
            sets.release(before)

    def _positions(self, keys: Sequence[str], now_s: float) -> dict[str, Any]:
        positions = self.delivery.positions
        if positions is None:
            return {}
        names = self.delivery.tell(keys)
        self._charge(len(names) // NAMES_A_ROW, now_s)
        return {"fields": positions.fields.names, "names": names}

    def _set_interval(self, wanted_ms: int) -> None:
        least_ms = 0 if self.grant is None else self.grant.min_interval_ms
        self.delivery.set_interval(max(wanted_ms, least_ms))
        if self.bars is not None:
            self.bars.interval_ms = self.delivery.interval_ms
            self.bars.paced = self._paced

    def _unsubscribe(self, command: Unsubscribe) -> bytes:
        held = set(self._held())
        plain, of_bars, of_trades = split_kinds(command.keys)
        prefixed = _Answers()
        self._read(of_bars, read_bar_key, prefixed, lambda *_: None)
        self._read(of_trades, read_trades_key, prefixed, lambda *_: None)
        codes = self._codes_of(plain) | prefixed.codes
        named = dict.fromkeys(codes.get(key, key) for key in command.keys)
        dropped = [key for key in named if key in held]
        rejected = [
            Rejection(key, "unknown_key", NOT_HELD)
            for key in command.keys
            if codes.get(key, key) not in held
        ]
        self.delivery.drop(split_kinds(dropped)[0])
        if self.trades is not None:
            isins = [
                isin for isin in self.trades.isins if str(TradesKey(isin)) in named
            ]
            self.trades.drop(isins)
        if self.bars is not None:
            self.bars.drop([k for k in self.bars.key_set.keys if str(k) in named])
        codes = {code: key for code, key in codes.items() if key in held}
        return self._ack(command.message_id, "unsubscribe", dropped, rejected, codes)

    def _check_limit(self, message_id: MessageId, keys: Sequence[str]) -> None:
        limit, held = self._shared.settings.max_keys, self._held()
        more = len(set(keys).difference(held))
        if len(held) + more > limit:
            rule = f"{limit} keys a connection; you hold {len(held)}"
            raise BadMessage(
                "key_limit", f"{rule} and asked for {more} more", message_id
            )

    def _ack(
        self,
        message_id: MessageId,
        op: str,
        accepted: Collection[str],
        rejected: Iterable[Rejection] = (),
        codes: dict[str, str] | None = None,
        **granted: Any,
    ) -> bytes:
        """Answer subscribe, unsubscribe, list or auth; the count is that of keys held.

        ``codes`` are told if there are any.
        """
        return message_frame(
            "ack",
            message_id,
            op=op,
            accepted=list(accepted),
            rejected=[rejection.to_wire() for rejection in rejected],
            count=len(self._held()),
            **granted,
            **({"codes": codes} if codes else {}),
        )


def _refuse_bars(grant: TokenGrant, key: BarKey, _: Collection[BarKey]) -> str | None:
    return None if grant.allows(key.isin) else NOT_ALLOWED


def is_long(keys: Sequence[str]) -> bool:
    """Say whether the snapshot of these keys may have very many rows."""
    stand_for_many = (key == ALL or has_members(key) for key in keys)
    return len(keys) >= CHARGED_FROM or any(stand_for_many)


def put_off_frame(refusal: WorkRefused, message_id: MessageId = None) -> bytes:
    """Build the answer to what is to be asked for again later."""
    return message_frame(
        "error",
        message_id,
        code="rate_limited",
        message=refusal.reason,
        retry_after_ms=refusal.wait_ms,
    )


def refusal_frame(error: BadMessage) -> bytes:
    """Build the answer to a message that breaks a rule."""
    return message_frame("error", error.message_id, code=error.code, message=str(error))
