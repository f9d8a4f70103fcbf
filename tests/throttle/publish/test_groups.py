"""Groups in the publish: atomic with the windows, of what is published alone."""

from collections.abc import Iterator
from json import loads

import pytest
import redis

from ingest.instrument_table.instrument_entry import InstrumentEntry
from ingest.redis_keys import Keys
from tests.conftest import eventually
from throttle.contract.cut import Cut
from throttle.contract.group import StoredGroup
from throttle.contract.snapshot import WindowSnapshot
from throttle.testing.driver import ThrottleDriver

pytestmark = pytest.mark.redis
W = 2_000
A, B, C = "KR7005930003", "KR7000660001", "KR7035420009"
KEYS = Keys("tt")
TABLE = [
    InstrumentEntry(A, market="KOSPI", sector="Chips", prev_close="100"),
    InstrumentEntry(B, market="KOSDAQ", sector="Chips", prev_close="50"),
]


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    """A connection to the session's server."""
    with redis.Redis.from_url(redis_url) as connected:
        yield connected


@pytest.fixture
def driver(redis_url: str) -> Iterator[ThrottleDriver]:
    """A job of one partition, or two, whose table names two instruments."""
    with ThrottleDriver(redis_url=redis_url, partitions=2, instruments=TABLE) as made:
        yield made


def stored(client: redis.Redis) -> dict[str, tuple[int, bytes]]:
    """Return offset and body of every group in the hash."""
    found = {}
    for field, value in client.hgetall(KEYS.groups).items():
        one = StoredGroup.decode(value)
        assert one.group.field == field.decode()
        found[field.decode()] = one.offset, one.group.body
    return found


def test_the_newest_groups_are_stored_with_their_windows(
    driver: ThrottleDriver, client: redis.Redis
) -> None:
    """A gateway that starts has every group, also one that is quiet now."""
    driver.trade(A, "101", at_ms=1)
    driver.trade(B, "51", at_ms=2)
    driver.turn_clock(W)
    driver.trade(B, "52", at_ms=W + 1)
    driver.turn_clock(2 * W)
    last = WindowSnapshot.decode(client.xrevrange(KEYS.windows)[0][1][b"snapshot"])
    cut = Cut.from_offset(loads(client.hget(KEYS.meta, "cut:throttle") or b""))
    # It has more digits than a double keeps, which a script has for numbers.
    assert last.instruments_version == cut.instruments > 2**53
    groups = stored(client)
    assert {field: offset for field, (offset, _) in groups.items()} == {
        "market:KOSPI": 1,
        "market:KOSDAQ": 2,
        "sector:Chips": 2,
    }
    assert {g.field: g.body for g in last.groups} == {
        field: body for field, (offset, body) in groups.items() if offset == 2
    }


def test_of_a_stale_row_groups_have_its_trades_alone(driver: ThrottleDriver) -> None:
    """What is no news is no instrument that moves, in the window or the whole message.

    It is known only when the script looks: the groups are then computed again.
    """
    driver.trade(A, "110", at_ms=1, time_ms=500, size="3")
    driver.turn_clock(W)
    driver.trade(A, "90", at_ms=W + 1, time_ms=100, size="7")
    driver.trade(B, "60", at_ms=W + 2, size="2")
    driver.trade(A, "120", at_ms=2 * W + 1, size="5")
    driver.turn_clock(3 * W)
    first, second, third = driver.windows()
    assert first.groups["group:market:KOSPI"]["volume"] == "3"
    late = second.groups["group:market:KOSPI"]
    assert (late["instruments"], late["trades"], late["volume"]) == ("0", "1", "7")
    assert second.groups["group:sector:Chips"]["volume"] == "9"
    assert second.groups["group:sector:Chips"]["instruments"] == "1"
    assert third.groups["group:market:KOSPI"]["volume"] == "5"
    together = driver.updates()[-1].groups["group:sector:Chips"]
    assert (together["instruments"], together["trades"], together["value"]) == (
        *("2", "3"),
        "1350",
    )
    assert driver.ledger().total.stale == 1
    assert driver.ledger().off_by == 0


def test_groups_that_the_table_no_longer_names_are_removed(
    driver: ThrottleDriver, client: redis.Redis
) -> None:
    """A renamed sector does not stay behind, whatever it is renamed to."""
    driver.trade(A, "101", at_ms=1)
    driver.turn_clock(W)
    assert "sector:Chips" in stored(client)
    renamed = [
        InstrumentEntry(A, market="KOSPI", sector='a "b"},{"group":', prev_close="1")
    ]
    driver.load_instruments(renamed)
    # The window that is open was planned before.
    driver.turn_clock(2 * W)
    driver.trade(A, "102", at_ms=2 * W + 1)
    driver.turn_clock(3 * W)
    assert set(stored(client)) == {"market:KOSPI", 'sector:a "b"},{"group":'}


def test_a_table_that_is_gone_takes_its_groups_along(
    driver: ThrottleDriver, client: redis.Redis
) -> None:
    """Prices go on; nobody knows of markets any more, and nobody guesses."""
    driver.trade(A, "101", at_ms=1)
    driver.turn_clock(W)
    client.delete("tt:instruments", "tt:instruments:meta")
    driver.turn_clock(2 * W)
    driver.trade(A, "102", at_ms=2 * W + 1)
    driver.turn_clock(3 * W)
    last = driver.windows()[-1]
    assert (last.prices(), last.groups, last.instruments_version) == ({A: "102"}, {}, 0)
    assert stored(client) == {}
    driver.load_instruments(TABLE)
    driver.turn_clock(4 * W)
    driver.trade(A, "103", at_ms=4 * W + 1)
    driver.turn_clock(5 * W)
    assert "group:market:KOSPI" in driver.windows()[-1].groups


def test_a_market_has_a_channel_of_its_own(
    driver: ThrottleDriver, client: redis.Redis
) -> None:
    """With its rows and its group, every window, also without any of them.

    Of a market nobody knows there are windows without rows.
    """
    channel = client.pubsub(ignore_subscribe_messages=True)
    names = [KEYS.market_updates(m) for m in ("KOSPI", "KOSDAQ", "x")]
    channel.subscribe(*names)
    eventually(lambda: len(client.pubsub_channels("tt:updates:*")) == 3)
    driver.trade(A, "101", at_ms=1)
    driver.trade(B, "51", at_ms=2)
    driver.turn_clock(W)
    driver.trade(B, "52", at_ms=W + 1)
    driver.trade(B, "53", at_ms=2 * W + 1)
    driver.turn_clock(3 * W)
    received: dict[str, list[WindowSnapshot]] = {name: [] for name in names}

    def has_all() -> bool:
        while (message := channel.get_message(timeout=0.05)) is not None:
            snapshot = WindowSnapshot.decode(message["data"])
            received[message["channel"].decode()].append(snapshot)
        return all(len(of_one) == 2 for of_one in received.values())

    eventually(has_all)
    rows = {
        name: [[row.isin for row in one.rows] for one in of_one]
        for name, of_one in received.items()
    }
    assert list(rows.values()) == [[[A], []], [[B], [B]], [[], []]]
    keys = [[[g.key for g in one.groups] for one in s] for s in received.values()]
    kospi, kosdaq = "group:market:KOSPI", "group:market:KOSDAQ"
    assert keys == [[[kospi], []], [[kosdaq], [kosdaq]], [[], []]]
    offsets = {(s.offset, s.windows) for s in received[names[1]]}
    assert offsets == {(1, 1), (3, 2)}
    channel.close()
    # Nobody listens any more: places of markets are no longer sent.
    eventually(lambda: client.pubsub_channels("tt:updates:*") == [])
    driver.trade(A, "102", at_ms=3 * W + 1)
    driver.turn_clock(4 * W)
    assert driver.windows()[-1].prices() == {A: "102"}
