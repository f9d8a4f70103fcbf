"""Whatever is merged on the way: what clients add up is what was traded."""

import asyncio
import json
from typing import Any, NamedTuple

from hypothesis import given, settings
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
    parse_exact,
    restate,
    sums_of,
)
from throttle.contract.row_sums import ONE, Amounts, RowSums
from throttle.contract.snapshot import LastValue, Row
from tickthrottle_client.updates_v1 import ALL, Updates

Trades = list[tuple[str, str, int, str]]
"""Price, size, by how many trades it is late, and what it counts for."""

Sums = dict[str, RowSums]

WINDOWS_A_DAY = 3


def add(sums: Sums, isin: str, more: RowSums) -> None:
    """Add to what was traded of an instrument."""
    sums[isin] = sums[isin].fold(more) if isin in sums else more


class Day(NamedTuple):
    """A day so far: the number of the day, its sums, and its first trade's price."""

    start_ms: int
    sums: RowSums
    first: bytes = b""
    open: str | None = None

    def with_row(self, other: "Day") -> "Day":
        """Return the day after what a further row says, as if it began a day."""
        if other.start_ms > self.start_ms:
            return other
        sums = self.sums.fold(other.sums)
        firsts = [one for one in (self, other) if one.first]
        opened = min(firsts, key=lambda one: one.first, default=self)
        return Day(self.start_ms, sums, opened.first, opened.open)

    def text(self) -> bytes:
        """Return what a row says of it."""
        price = (self.open or "").encode()
        return b"%d,%b,%b" % (self.start_ms, self.sums.encode(), price)


class Market:
    """Publishes as the script does; ``traded`` has every trade of a row.

    Trades that do not count for the last price have none if nothing was shown before.
    """

    def __init__(self) -> None:
        self.board = Board()
        self.board.replace(Position(EPOCH, 0, FIRST_WINDOW), [])
        self.hub = Hub(self.board, GatewaySettings(), Counters())
        self.traded: list[tuple[int, str, RowSums]] = []
        self.offset, self.window = 0, FIRST_WINDOW
        self._seq = 100
        self._last: dict[str, LastValue] = {}
        self.days: dict[str, Day] = {}

    def publish(self, *windows: dict[str, Trades], is_part: bool = False) -> None:
        """Publish windows with one update for all of them, or another part of one."""
        latest: dict[str, Row] = {}
        for trades in windows:
            self.offset += 1
            self.window += 0 if is_part else WINDOW_MS
            for isin, made in trades.items():
                row = self._row(isin, made)
                if row is not None:
                    latest[isin] = row.merge(latest[isin]) if isin in latest else row
        snapshot = make_snapshot(
            self.offset, *latest.values(), windows=len(windows), window=self.window
        )
        update = make_update(self.board, self.board.apply(snapshot))
        self.hub.publish(update, snapshot, self.window)

    def _row(self, isin: str, made: Trades) -> Row | None:
        shown = self._last.get(isin)
        rows, every = [], []
        for price, size, late, updates in made:
            self._seq += 1
            counts = Updates.parse(updates)
            sums = RowSums(1, Amounts.of_trade(price, size, counts))
            every.append((self.offset, isin, sums))
            row = make_row(isin, price, self._seq - late, updates=updates)
            body = row.body.replace(b'"size":40', b'"size":%b' % size.encode())
            own = ONE if counts == ALL else sums.encode()
            rows.append((counts.last, row._replace(body=body, sums=own)))
        day, starts_day = self._with_trades(isin, rows)
        if shown is None and not any(is_last for is_last, _ in rows):
            return None
        self.traded += every
        (is_news, merged), *newer = sorted(
            rows, key=lambda row: (row[0], row[1].version)
        )
        for is_last, row in newer:
            merged, is_news = row.merge(merged), is_last
        if shown is not None and (not is_news or merged.version <= shown.version):
            merged = restate(shown, merged)
        value = LastValue(isin, merged.version, self.offset, merged.body)
        self._last[isin] = value
        merged = merged._replace(day=day.text())
        return merged.as_starting() if starts_day else merged

    def _with_trades(self, isin: str, rows: list[tuple[bool, Row]]) -> tuple[Day, bool]:
        """Add to the day; say whether it begins or opens anew with these rows."""
        start_ms = (self.window - FIRST_WINDOW - 1) // (WINDOWS_A_DAY * WINDOW_MS)
        before, day = self.days.get(isin), None
        for is_last, row in rows:
            price = json.loads(row.body, parse_float=str, parse_int=str)["price"]
            first = (row.version, price) if is_last else (b"", None)
            one = Day(start_ms, row.row_sums, *first)
            day = one if day is None else day.with_row(one)
        assert day is not None
        after = self.days[isin] = day if before is None else before.with_row(day)
        return after, before is None or (before.start_ms, before.first) != (
            after.start_ms,
            after.first,
        )

    def traded_since(self, offset: int) -> Sums:
        """Return what was traded after an offset."""
        sums: Sums = {}
        for at, isin, trade in self.traded:
            if at > offset:
                add(sums, isin, trade)
        return sums


class Reader:
    """A client that adds up what it gets."""

    def __init__(self, market: Market, interval_ms: int = 0, **since: Any) -> None:
        self.listener = Listener(market.hub)
        commands = self.listener.client.commands
        message = {"op": "subscribe", "keys": ["*"], "min_interval_ms": interval_ms}
        commands.answer(json.dumps(message | since), 0.0, 0)
        self.sums: Sums = {}
        self.snapshot: set[str] = set()
        self.versions: dict[str, tuple[int, int]] = {}
        self.days: dict[str, Day] = {}

    def ask_again(self) -> None:
        """Have a snapshot of everything sent once more."""
        commands = self.listener.client.commands
        for op in ("unsubscribe", "subscribe"):
            commands.answer(json.dumps({"op": op, "keys": ["*"]}), 0.0, 0)

    def read(self, most: int = 1_000) -> None:
        """Read some frames, or all."""
        while most and (frame := self.listener.next_frame()) is not None:
            most -= 1
            self._take(parse_exact(frame))

    def _take(self, message: dict[str, Any]) -> None:
        for item in message.get("data", []):
            isin, version = item["isin"], (int(item["time"]), int(item["seq"]))
            assert version >= self.versions.get(isin, version), (
                "an instrument went back"
            )
            self.versions[isin] = version
            self._take_day(isin, item)
            if message["type"] == "snapshot":
                self.snapshot.add(isin)
                assert sums_of(item) == RowSums(0)
            else:
                add(self.sums, isin, sums_of(item))

    def _take_day(self, isin: str, item: dict[str, Any]) -> None:
        """Take a day in place of the one there was, or else add to that one."""
        if "day" in item:
            told = item["day"]
            sums, start_ms = sums_of(told | {"price": "", "size": ""}), told["start"]
            self.days[isin] = Day(int(start_ms), sums, open=told.get("open"))
        elif isin in self.days:
            before = self.days[isin]
            self.days[isin] = before._replace(sums=before.sums.fold(sums_of(item)))

    def check_days(self, market: Market) -> None:
        """Check that its days are those of all instruments that were shown."""
        assert self.days == {
            isin: day._replace(first=b"")
            for isin, day in market.days.items()
            if market.board.get(isin) is not None
        }

    def since(self) -> dict[str, Any]:
        """Return from where it may go on."""
        position = self.listener.client.delivery.position()
        return {"epoch": position.epoch, "offset": position.offset}


DECIMAL = st.sampled_from(["199500", "0.30", "7", "123456789.000000000000000001"])
TRADES = st.lists(
    st.tuples(
        DECIMAL,
        DECIMAL,
        st.sampled_from([0, 0, 1, 60]),
        st.sampled_from([*[ALL.encode()] * 3, "last", "last,volume", "volume", "none"]),
    ),
    min_size=1,
    max_size=3,
)
WINDOW = st.dictionaries(st.sampled_from([SAMSUNG, HYNIX, NAVER]), TRADES)
READ = st.just("read")
QUIET_WINDOWS = 8
"""After so many the longest interval has begun twice."""


@settings(max_examples=many(150))
@given(
    st.lists(
        st.one_of(
            READ,
            st.just("anew"),
            st.tuples(WINDOW, st.just(False)),
            st.tuples(WINDOW, st.just(True)),
            st.tuples(WINDOW, WINDOW, st.just(False)),
        ),
        max_size=25,
    )
)
def test_however_windows_are_merged_clients_add_up_the_same(steps: list[Any]) -> None:
    """The fast, the slow, and those who ask seldom.

    Several jobs publish, whose rows are held back; one makes up for an outage.
    """
    asyncio.run(_merge(steps))


async def _merge(steps: list[Any]) -> None:
    market = Market()
    fast, slow, seldom = Reader(market), Reader(market), Reader(market, 4_000)
    again, slow_again = Reader(market), Reader(market, 4_000)
    # Each has its snapshot, of nothing.
    slow.read()
    for step in [*steps, *(({}, False) for _ in range(QUIET_WINDOWS))]:
        if step == "read":
            slow.read(1)
            slow_again.read(1)
        elif step == "anew":
            # Another snapshot, also in the middle of a window that comes in parts.
            again.ask_again()
            slow_again.ask_again()
        else:
            market.publish(*step[:-1], is_part=step[-1])
        for reader in (fast, seldom, again):
            reader.read()
    slow.read()
    slow_again.read()
    late = Reader(market)
    late.read()
    for reader in (fast, slow, seldom):
        assert reader.sums == market.traded_since(0)
    for reader in (fast, slow, seldom, again, slow_again, late):
        reader.check_days(market)


@settings(max_examples=many(200))
@given(st.lists(st.one_of(READ, READ, WINDOW), max_size=15), st.lists(WINDOW))
def test_who_comes_back_is_told_of_every_instrument_and_goes_on_from_there(
    before: list[Any], meanwhile: list[dict[str, Trades]]
) -> None:
    """Also of one whose trades all came too late, so that its price is the same."""
    asyncio.run(_resume(before, meanwhile))


async def _resume(before: list[Any], meanwhile: list[dict[str, Trades]]) -> None:
    market = Market()
    slow = Reader(market)
    slow.read()
    for step in before:
        if step == "read":
            slow.read(1)
        else:
            market.publish(step)
    since = slow.since()
    for window in meanwhile:
        market.publish(window)
    returned, offset = Reader(market, since=since), market.offset
    returned.read()
    assert returned.snapshot == market.traded_since(since["offset"]).keys()
    for window in [*meanwhile, {}]:
        market.publish(window)
    returned.read()
    assert returned.sums == market.traded_since(offset)
    # What it knew before goes on where nothing was traded meanwhile.
    returned.days = slow.days | returned.days
    returned.check_days(market)
