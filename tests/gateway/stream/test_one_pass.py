"""A client that keeps up is written to past its mailbox, and sees the same frames."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.settings import GatewaySettings
from gateway.stream.board import Board, Position
from gateway.stream.counters import Counters
from gateway.stream.hub import Hub
from tests.examples import many
from tests.gateway.listener import Listener
from tests.gateway.samples import (
    EPOCH,
    FIRST_WINDOW,
    HYNIX,
    NAVER,
    SAMSUNG,
    WINDOW_MS,
    make_row,
    make_snapshot,
    make_update,
)
from throttle.contract.snapshot import LastValue

ISINS = [SAMSUNG, HYNIX, NAVER]
CLIENTS = 3


class Writer(Listener):
    """Writes down what its client is sent, while it has room."""

    def __init__(self, hub: Hub, *, may_be_ready: bool) -> None:
        self.sent: list[bytes] = []
        self.past_mailbox = 0
        self.has_room = True
        self._may_be_ready = may_be_ready
        super().__init__(hub)

    @property
    def is_ready(self) -> bool:  # type: ignore[override]
        """Say whether ``write`` may be used."""
        return self._may_be_ready and self.has_room

    def write(self, frame: bytes) -> int:
        """Write past the mailbox."""
        assert self.has_room
        self.past_mailbox += 1
        self.sent.append(frame)
        return len(frame)

    def wake(self) -> None:
        """Write what the client is due."""
        while self.has_room and (frame := self.next_frame()) is not None:
            self.sent.append(frame)


class Side:
    """A hub and its clients; the one that is compared with takes in everything at once.

    Its clients are never ready, so each of them has all from its mailbox.
    """

    def __init__(self, board: Board, *, has_one_pass: bool) -> None:
        self.hub = Hub(board, GatewaySettings(), Counters())
        self.has_one_pass = has_one_pass
        self.writers = [
            Writer(self.hub, may_be_ready=has_one_pass) for _ in range(CLIENTS)
        ]

    def publish(self, update: Any) -> None:
        """Publish what is on the board."""
        self.hub.publish(update)
        if not self.has_one_pass:
            for writer in self.writers:
                writer.client.delivery.take_in()

    def say(self, number: int, **message: Any) -> None:
        """Have a client send a message."""
        client = self.writers[number].client
        client.post(client.commands.answer(json.dumps(message), 0.0, 0))

    def make_room(self, number: int, *, has_room: bool) -> None:
        """Have a connection take more, or no more."""
        writer = self.writers[number]
        writer.has_room = has_room
        if has_room:
            writer.wake()


CLIENT = st.integers(0, CLIENTS - 1)
KEYS = st.sampled_from([*ISINS, "*"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("window"), st.sets(st.sampled_from(ISINS))),
        st.tuples(st.just("window"), st.sets(st.sampled_from(ISINS))),
        st.tuples(st.just("part"), st.sets(st.sampled_from(ISINS))),
        st.tuples(st.just("wait"), st.integers(1, CLIENTS + 1)),
        st.tuples(st.just("wait"), st.integers(1, CLIENTS + 1)),
        st.tuples(st.sampled_from(["subscribe", "unsubscribe"]), CLIENT, KEYS),
        st.tuples(st.just("seldom"), CLIENT, st.sampled_from([0, 4_000])),
        st.tuples(st.just("room"), CLIENT, st.booleans()),
        st.tuples(st.sampled_from(["beat", "ask", "ahead"]), CLIENT),
        st.tuples(st.sampled_from(["announce", "restart"])),
    ),
    max_size=40,
)


@settings(
    max_examples=many(300),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps=STEPS)
def test_whoever_moves_in_and_out_of_the_pass_sees_the_same_frames(
    steps: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever happens while some have had their turn and others wait for it."""
    # One client in each iteration of the event loop.
    monkeypatch.setattr("gateway.stream.serving_round.SLICE_S", 1e-9)
    asyncio.run(compare(steps))


async def compare(steps: list[Any]) -> None:
    """Do the same to both sides; every client has to be sent the same."""
    board = Board()
    board.replace(Position(EPOCH, 0, FIRST_WINDOW), [])
    sides = [Side(board, has_one_pass=one_pass) for one_pass in (True, False)]
    for side in sides:
        side.say(0, op="subscribe", keys=ISINS[:2])
        side.say(1, op="subscribe", keys=["*"])
    seq = 0
    for what, *rest in [*steps, ("wait", CLIENTS + 1), ("window", set(ISINS))]:
        match what:
            case "window" | "part":
                seq += 1
                here = board.position
                window = (here.window or 0) + (WINDOW_MS if what == "window" else 0)
                rows = [make_row(isin, seq=seq) for isin in sorted(*rest)]
                offset = here.offset + 1
                news = board.apply(make_snapshot(offset, *rows, window=window))
                update = make_update(board, news)
                for side in sides:
                    side.publish(update)
            case "wait":
                for _ in range(*rest):
                    await asyncio.sleep(0)
            case "restart":
                seq += 1
                row = make_row(SAMSUNG, seq=seq)
                position = Position(f"{EPOCH}{seq}", 1, board.position.window)
                board.replace(position, [LastValue(row.isin, row.version, 1, row.body)])
                for side in sides:
                    side.hub.restart()
            case _:
                for side in sides:
                    act(side, what, *rest)
        for one, other in zip(*(side.writers for side in sides), strict=True):
            assert one.sent == other.sent
    for side in sides:
        for number in range(CLIENTS):
            side.make_room(number, has_room=True)
    async with asyncio.timeout(10):
        await asyncio.gather(*(side.hub.served() for side in sides))
    for one, other in zip(*(side.writers for side in sides), strict=True):
        assert one.sent == other.sent
        assert other.past_mailbox == 0
        assert not one.client.delivery.is_owed


def act(side: Side, what: str, number: int = 0, detail: Any = None) -> None:
    """Do something to one side's clients."""
    client = side.writers[number].client
    match what:
        case "subscribe" | "unsubscribe":
            side.say(number, op=what, keys=[detail])
        case "seldom":
            side.say(number, op="subscribe", keys=[HYNIX], min_interval_ms=detail)
        case "ahead":
            here = side.hub.board.position
            since = {"epoch": here.epoch, "offset": here.offset + 1}
            side.say(number, op="subscribe", keys=[HYNIX], since=since)
        case "room":
            side.make_room(number, has_room=detail)
        case "beat":
            client.beat(0, 0.0)
        case "ask":
            client.delivery.position()
        case "announce":
            side.hub.announce(b'{"type":"status"}', is_lasting=False)


async def test_a_client_that_keeps_up_is_written_to_past_its_mailbox() -> None:
    """And one without room is not: what it is due waits, and is merged."""
    board = Board()
    board.replace(Position(EPOCH, 0, FIRST_WINDOW), [])
    side = Side(board, has_one_pass=True)
    steady, full = side.writers[:2]
    for number in (0, 1):
        side.say(number, op="subscribe", keys=[SAMSUNG])
    full.has_room = False
    sent = len(full.sent)
    for seq in range(1, 4):
        window = FIRST_WINDOW + seq * WINDOW_MS
        news = board.apply(
            make_snapshot(seq, make_row(SAMSUNG, seq=seq), window=window)
        )
        side.publish(make_update(board, news))
        await side.hub.served()
    assert steady.past_mailbox == 3
    assert len(full.sent) == sent
    side.make_room(1, has_room=True)
    (merged,) = full.sent[sent:]
    assert json.loads(merged)["merged"] == 3
    side.publish(make_update(board, board.apply(make_snapshot(4, make_row(seq=4)))))
    await side.hub.served()
    assert (steady.past_mailbox, full.past_mailbox) == (4, 1)


async def test_a_client_that_was_passed_by_is_sent_everything_anew() -> None:
    """Which cannot be; if it is, nothing is lost."""
    board = Board()
    board.replace(Position(EPOCH, 0, FIRST_WINDOW), [])
    side = Side(board, has_one_pass=True)
    side.say(0, op="subscribe", keys=["*"])
    delivery = side.writers[0].client.delivery
    for offset in (1, 2):
        news = board.apply(make_snapshot(offset, make_row(seq=offset)))
        delivery.newest.put(make_update(board, news))
    assert delivery.steady_frame() is None
    frame = json.loads(delivery.next_frame() or b"")
    assert (frame["type"], frame["offset"]) == ("snapshot", 2)
    assert delivery.next_frame() is None
