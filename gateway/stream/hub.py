"""The hub: the set of clients. Publishing hands out work and waits for nobody."""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from random import uniform

import structlog

from gateway.admission.bounds import BOUNDS, MAX_MESSAGE_BYTES, Bounds
from gateway.admission.limits import Admission
from gateway.admission.loop_turns import LoopTurns
from gateway.admission.origins import is_allowed, refusal
from gateway.admission.shared_figures import Tally
from gateway.admission.tokens import TokenReader
from gateway.admission.work import ROWS_A_STREAM, WorkBudget, WorkRefused
from gateway.protocol.key_sets import KeySets
from gateway.protocol.market_instruments import MarketInstruments
from gateway.settings import GatewaySettings
from gateway.stream.bars.bar_delivery import BarDesk
from gateway.stream.board import Board
from gateway.stream.client import (
    Client,
    Ending,
    Kind,
    Sender,
    closed_notice,
    restart_notice,
)
from gateway.stream.close_log import CloseLog
from gateway.stream.commands import ClientCommands, Shared
from gateway.stream.counters import Counters
from gateway.stream.delivery import Delivery, NewestUpdate
from gateway.stream.frames import Update, message_frame
from gateway.stream.lifetimes import Lifetime
from gateway.stream.paced_source import PacedSources
from gateway.stream.serving_round import POLITE_S, ServingRound
from gateway.stream.statuses.status_delivery import StatusDesk
from gateway.stream.timer_wheel import TimerWheel
from gateway.stream.trade_delivery import TradeDesk
from gateway.stream.window_timings import WindowTimings
from ingest.instrument_table.known_instruments import Instruments
from throttle.contract.snapshot import WindowSnapshot
from tickthrottle_client.tick_v1 import PROTOCOL, CloseCode

MAX_SHOWN_CHARS = 200
"""This much of an origin is logged."""

SILENT_WINDOWS = 1.5
"""After so many windows without one, the intervals of clients go on by themselves."""

AT_ONCE = 256
"""This many clients are looked after before the event loop may do something else."""


SHED_AT_ONCE = 16
"""Streams that are ended at a time, ten times a second, of who makes a gateway late."""

SHEDDING_S = 10.0
"""For so long after that, others may come in although the gateway is late."""

log = structlog.get_logger()


class Hub:
    """Every connected client, and what all of them share.

    ``publish`` and its like only note what there is; the clients are then served one
    after the other, in slices, so that the slowest one costs the others nothing and a
    hundred thousand frames do not hold up a heartbeat. A window that arrives while
    clients are still waiting for the one before is merged with it.
    """

    def __init__(
        self,
        board: Board,
        settings: GatewaySettings,
        counters: Counters,
        tokens: TokenReader | None = None,
        tally: Tally | None = None,
        work: WorkBudget | None = None,
        bounds: Bounds = BOUNDS,
    ) -> None:
        self.tokens = tokens
        self.work = work or WorkBudget(settings.rows_per_second)
        self.board = board
        self.settings = settings
        self.bounds = bounds
        self.counters = counters
        self.excess: Callable[[], str | None] = lambda: None
        """Why no more clients can be served, None while they can."""
        self.turns = LoopTurns(settings.rows_per_second)
        self._admission = Admission(
            settings.max_clients, settings.max_clients_per_address, tally
        )
        # In order of arrival; the values mean nothing.
        self._clients: dict[Client, None] = {}
        self._key_sets = KeySets(board.numbers)
        if settings.served_market is not None:
            self._key_sets.change_instruments(
                MarketInstruments(Instruments(), settings.served_market)
            )
        self._newest = NewestUpdate()
        self.paces = PacedSources(board, self._newest)
        self.trade_desk = TradeDesk(counters)
        self.status_desk = StatusDesk(counters)
        self.bar_desk = BarDesk(counters, lambda: board.window_ms, lambda: len(board))
        self._shared = Shared(
            settings,
            counters,
            tokens,
            self.work,
            self.paces,
            self.bar_desk,
            self.trade_desk,
            self.status_desk,
        )
        self._heartbeat_s = settings.heartbeat_ms / 1_000
        self._tick_s = min(0.5, _shortest_s(settings, bounds) / 10)
        self._timers: TimerWheel[Client] = TimerWheel(self._tick_s, time.monotonic())
        self._status: bytes | None = None
        self._round = ServingRound(self._serve, self._has_served, self._spread_s)
        self._shedding_until_s = 0.0
        self.timings = WindowTimings()
        self.close_log = CloseLog()

    def __len__(self) -> int:
        return len(self._clients)

    def refuse_page(self, headers: Mapping[str, str]) -> str | None:
        """Return why whoever sent these headers may have no stream, None if he may.

        Who may not is counted. Names of headers are in small letters.
        """
        origin, host = headers.get("origin"), headers.get("host")
        if is_allowed(origin, host, self.settings.allowed_origins):
            return None
        self.counters.clients_origin_refused += 1
        if self.close_log.may_say(time.monotonic()):
            shown = None if origin is None else origin[:MAX_SHOWN_CHARS]
            log.warning(
                "a page may not open a stream",
                origin=shown,
                setting="TICKTHROTTLE_ALLOWED_ORIGINS",
            )
        return refusal(origin)

    def enter(self, address: str) -> str | None:
        """Count a connection in and return None, or return why it may not come in."""
        now_s = time.monotonic()
        excess = self.excess()
        is_others_fault = now_s < self._shedding_until_s and not self.work.is_heavy(
            address, now_s
        )
        if excess is not None and not is_others_fault:
            self.counters.clients_shed += 1
            return excess
        try:
            self.work.check((address,), now_s)
        except WorkRefused as refused:
            self.counters.work_refused += 1
            return refused.reason
        refusal = self._admission.enter(address)
        if refusal is not None:
            self.counters.clients_full_refused += 1
        self.work.charge((address,), ROWS_A_STREAM, now_s)
        return refusal

    def shed_heaviest(self) -> None:
        """End some streams of the address that most is worked out for, if it is much.

        The process is late. Newcomers from elsewhere come in meanwhile.
        """
        now_s = time.monotonic()
        addresses = {client.commands.address for client in self._clients}
        heaviest = self.work.heaviest(addresses, now_s)
        if heaviest is None:
            return
        self._shedding_until_s = now_s + SHEDDING_S
        causes = [c for c in self._clients if c.commands.address == heaviest][
            :SHED_AT_ONCE
        ]
        for client in causes:
            self.counters.clients_shed += 1
            self.end(client, CloseCode.OVERLOADED, "your address asks for too much")

    def exit(self, address: str) -> None:
        """Count a connection out that came in."""
        self._admission.leave(address)

    @property
    def streams(self) -> int:
        """How many streams the gateway has, those of its other workers with them."""
        return len(self) + self._admission.elsewhere

    def clients(self) -> tuple[Client, ...]:
        """Return every client, in order of arrival."""
        return tuple(self._clients)

    def find(self, client_id: str) -> Client | None:
        """Return the client with this id, None if it is not connected."""
        return next((c for c in self._clients if c.id == client_id), None)

    def join(
        self, sender: Sender, now_s: float, address: str = "", kind: Kind = "websocket"
    ) -> Client:
        """Add a client; it hears the feed's status if that is not the usual one."""
        bounds, counters = self.bounds, self.counters
        # Those who came together shall not all go together.
        lifetime = Lifetime(now_s, bounds, bounds.max_stream_s * uniform(0.9, 1))
        delivery = Delivery(self.board, bounds, counters, self._key_sets, self._newest)
        commands = ClientCommands(delivery, self._shared, sender.wake, now_s, address)
        client = Client(commands, sender, lifetime, counters, now_s, kind)
        if self._status is not None:
            client.announce(self._status)
        self._clients[client] = None
        self._set_timer(client, now_s)
        return client

    def welcome(self, client: Client, now_us: int) -> bytes:
        """Build a client's first frame. ``now_us`` is the time of day."""
        settings = self.settings
        market = settings.served_market
        return message_frame(
            "welcome",
            protocol=PROTOCOL,
            connection=client.id,
            epoch=self.board.position.epoch,
            window_ms=self.board.window_ms,
            heartbeat_ms=settings.heartbeat_ms,
            server_time=now_us,
            limits={
                "keys": settings.max_keys,
                "messages_per_second": settings.messages_per_second,
                "message_bytes": MAX_MESSAGE_BYTES,
            },
            **({} if market is None else {"market": market}),
        )

    def leave(self, client: Client) -> None:
        """Forget a client and what it has subscribed to, whatever it was told."""
        self._clients.pop(client, None)
        client.commands.close()

    async def wait_turn(self, client: Client) -> bool:
        """Wait until what a client has said may be worked on; False: no longer.

        It may have been sent away meanwhile. The wait counts for no deadline.
        """
        client.lifetime.begin_wait(time.monotonic())
        await self.turns.wait(client.commands.payers)
        client.lifetime.end_wait(time.monotonic())
        return client.ending is None

    def end(self, client: Client, code: CloseCode, reason: str) -> None:
        """Close a client's connection."""
        notice = restart_notice(reason) if code == CloseCode.RESTART else None
        self._end(client, Ending(code, reason, notice))

    def dismiss(self, client: Client) -> None:
        """Close a client's connection because an operator says so.

        It is told to come back, but not at once.
        """
        reason = "closed by the operator"
        self.counters.clients_operator_closed += 1
        notice = closed_notice(reason)
        self._end(client, Ending(CloseCode.TOO_MANY_MESSAGES, reason, notice))

    def publish(
        self,
        update: Update,
        snapshot: WindowSnapshot | None = None,
        now_ms: int | None = None,
    ) -> None:
        """Offer an update, already on the board, to every client.

        ``snapshot`` is what it was made of, where that was one message. ``now_ms`` is
        the time of day, by which intervals count; without it, that of the window.
        """
        if snapshot is not None:
            self.timings.begin(snapshot, len(self._clients))
        self.counters.updates_published += 1
        self._take_in()
        if now_ms is not None:
            self.board.clock_ms = now_ms
        self._newest.put(update)
        self.paces.take_in(update)
        self._open_paces(self.board.clock_ms)
        self._serve_all()

    @property
    def instruments(self) -> Instruments:
        """The instrument table by which keys stand for instruments."""
        return self._key_sets.instruments

    def change_instruments(self, instruments: Instruments) -> None:
        """Take in another instrument table; clients hear of keys that it changes."""
        self._take_in()
        self._key_sets.change_instruments(instruments)
        self._serve_all()

    def restart(self) -> None:
        """Send every client its snapshot anew: the board was replaced."""
        # It may name an instrument's trade that a token does not allow yet: paced
        # sources go on when their next interval begins.
        self._newest.skip()
        self._serve_all()

    def announce(self, status: bytes, *, is_lasting: bool) -> None:
        """Tell every client the feed's status, and if it lasts those who come later."""
        self._status = status if is_lasting else None
        for client in self._clients:
            client.announce(status)
        self._serve_all()

    def pass_time(self, now_ms: int) -> None:
        """Have clients sent what the time of day makes due, also while no window comes.

        Where windows come, it is they that turn the clock: each serves all clients.
        """
        board = self.board
        is_silent = abs(now_ms - board.clock_ms) >= SILENT_WINDOWS * board.window_ms
        if is_silent:
            self._take_in()
            board.clock_ms = now_ms
        if self._open_paces(now_ms) or is_silent:
            self._serve_all()

    async def run(self) -> None:
        """Look after heartbeats, the slow, the idle and the old, until cancelled."""
        while True:
            await asyncio.sleep(self._tick_s)
            self.close_log.tell_rest()
            now_s = time.monotonic()
            self.pass_time(_now_ms())
            for number, client in enumerate(self._timers.due(now_s), 1):
                if number % AT_ONCE == 0:
                    await asyncio.sleep(0)
                    now_s = time.monotonic()
                if client not in self._clients:
                    continue
                try:
                    if client.check_s <= now_s:
                        self._look_after(client, now_s)
                    if client.sent_s + self._heartbeat_s <= now_s:
                        client.beat(time.time_ns() // 1_000, now_s)
                except Exception:
                    log.exception(
                        "a client could not be looked after", connection=client.id
                    )
                    self._drop(client)
                    continue
                self._set_timer(client, now_s)

    def _open_paces(self, now_ms: int) -> bool:
        """Show what tokens with an interval allow from now; say if that is news."""
        has_news = False
        for source in self.paces.due(now_ms):
            self._take_in()
            has_news = source.open(now_ms) or has_news
        return has_news

    def _take_in(self) -> None:
        """Have those whose turn has not come take in what is replaced now."""
        for client in self._round.due:
            client.delivery.take_in()

    def _look_after(self, client: Client, now_s: float) -> None:
        if client.ending is not None:
            return
        left_s = self.bounds.slow_close_s - client.sender.stuck_s(now_s)
        due = client.lifetime.due_end(client.commands, now_s, is_stuck=left_s <= 0)
        if due is not None:
            count = getattr(self.counters, due.counter)
            setattr(self.counters, due.counter, count + 1)
            self.end(client, due.code, due.reason)
        next_end_s = client.lifetime.next_end_s(client.commands, now_s)
        client.check_s = min(now_s + left_s, next_end_s)

    def _set_timer(self, client: Client, now_s: float) -> None:
        """Have a client be looked after when something may be due of it."""
        # One without room for a heartbeat is asked again before the next.
        beat_s = client.sent_s + self._heartbeat_s
        retry_s = now_s + self._heartbeat_s / 4
        self._timers.add(client, min(client.check_s, max(beat_s, retry_s)))

    async def served(self, within_s: float = POLITE_S) -> None:
        """Wait while a window goes out (``ServingRound.over``)."""
        await self._round.over(within_s)

    def _serve_all(self) -> None:
        """Give every client its turn; those who still wait for one get it anew."""
        number = (self.board.position.window or 0) // self.board.window_ms
        self._round.begin(tuple(self._clients), number)

    def _serve(self, client: Client, now_s: float) -> bool:
        try:
            return client.serve(now_s)
        except Exception:
            log.exception("a client could not be served", connection=client.id)
            self._drop(client)
            return True

    def _has_served(self) -> None:
        self.timings.finish(_now_ms())

    def _spread_s(self) -> float:
        """Return over how long a window goes out: never more than half of the next."""
        return min(self.settings.spread_ms, self.board.window_ms / 2) / 1_000

    def _drop(self, client: Client) -> None:
        """End a client after a fault of ours, which shall cost nobody else anything."""
        with suppress(Exception):
            self._end(client, Ending(CloseCode.INTERNAL, "internal error"))

    def _end(self, client: Client, ending: Ending) -> None:
        if client in self._clients:
            code, reason = ending.code, ending.reason
            self.close_log.by_us(client.id, code, reason, time.monotonic())
        self.leave(client)
        client.end(ending)


def _shortest_s(settings: GatewaySettings, bounds: Bounds) -> float:
    """Return the shortest time after which something may be due of a client."""
    return min(
        settings.heartbeat_ms / 1_000,
        bounds.slow_close_s,
        bounds.auth_s,
        bounds.first_keys_s,
        bounds.max_stream_s,
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
