"""REST: published windows, the newest, some, or one of them."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import redis

from gateway.admission.tokens import EVERYTHING
from gateway.http.authorization import Caller
from gateway.http.built_once import Builds
from gateway.http.conditional import ConditionalAnswers
from gateway.rest import windows
from gateway.rest.windows import PreparedWindows
from gateway.stream.board import Position
from gateway.stream.counters import Counters
from gateway.upstream.redis_client import create_redis
from gateway.upstream.window_log import WindowLog
from ingest.instrument_table.known_instruments import Instruments
from tests.gateway.publisher import Publisher
from tests.gateway.requests import make_request
from tests.gateway.samples import FIRST_WINDOW, HYNIX, SAMSUNG, make_board, make_row
from tests.gateway.servers import Gateway, running_gateway
from tests.ports import free_port
from throttle.contract.snapshot import WindowSnapshot

pytestmark = pytest.mark.redis


def windows_of(gateway: Gateway, path: str) -> list[dict[str, Any]]:
    """Return the windows of an answer."""
    status, body = gateway.get(path)
    answer = json.loads(body)
    assert (status, answer["count"]) == (200, len(answer["data"]))
    windows: list[dict[str, Any]] = answer["data"]
    return windows


def test_windows_are_told_newest_first(listed: Gateway) -> None:
    """With their rows and trades, or only with the number of both."""
    newest, older, empty = windows_of(listed, "/v1/windows?limit=5")
    assert [w["offset"] for w in (newest, older, empty)] == [3, 2, 1]
    assert b'"price":0.30,' in listed.get("/v1/windows")[1]
    assert (older["count"], older["trades"], older["windows"]) == (2, 6, 1)
    assert (newest["data"][0]["trades"], empty["data"]) == (7, [])
    sums = b'"trades":5,"volume":200,"value":60,"high":0.3,"low":0.3}'
    assert sums in listed.get("/v1/windows")[1]
    assert "volume" not in older["data"][1]
    bare = windows_of(listed, "/v1/windows?rows=false")
    assert [(w["count"], w["trades"]) for w in bare] == [(1, 7), (2, 6), (0, 0)]
    assert all("data" not in window for window in bare)


def test_one_window_has_the_form_of_several(listed: Gateway) -> None:
    """It is the same, however it is asked for."""
    for end in ["latest", str(FIRST_WINDOW + 6_000)]:
        assert windows_of(listed, f"/v1/windows/{end}") == windows_of(
            listed, "/v1/windows?limit=1"
        )
        [bare] = windows_of(listed, f"/v1/windows/{end}?rows=false")
        assert "data" not in bare
        assert bare["trades"] == 7


def test_who_has_a_window_is_told_so(listed: Gateway) -> None:
    """Polling costs a line."""
    for path in ["/v1/windows", "/v1/windows/latest"]:
        tag = listed.fetch(path)[2]["etag"]
        assert listed.fetch(path, if_none_match=tag)[:2] == (304, b"")
        assert listed.fetch(f"{path}?rows=false", if_none_match=tag)[0] == 200


def test_a_window_that_is_not_kept_is_named(
    client: redis.Redis, redis_url: str, gateway: Gateway
) -> None:
    """An end at which none ended, the newest of an empty stream."""
    status, body = gateway.get("/v1/windows/7")
    error = json.loads(body)
    assert (status, error["code"]) == (404, "unknown_window")
    assert "no window that ends at 7 is kept" in error["detail"]
    assert gateway.get("/v1/windows/noon")[0] == 400
    assert gateway.get("/v1/windows/-1")[0] == 400
    client.flushall()
    with running_gateway(redis_url) as empty:
        error = json.loads(empty.get("/v1/windows/latest")[1])
        assert (error["status"], error["code"]) == (404, "unknown_window")
        assert windows_of(empty, "/v1/windows") == []


def test_each_jobs_part_of_a_window_is_told(
    publisher: Publisher, gateway: Gateway
) -> None:
    """The newest part first; the newest window may get further parts."""
    publisher.publish(make_row(SAMSUNG, trades=2))
    gateway.wait_until(2)
    [first] = windows_of(gateway, "/v1/windows/latest")
    publisher.publish_part(make_row(HYNIX, trades=3))
    publisher.publish_part(make_row(HYNIX, seq=2), windows_behind=1)
    gateway.wait_until(4)
    parts = windows_of(gateway, "/v1/windows/latest")
    assert [(w["offset"], w["trades"]) for w in parts] == [(3, 3), (2, 2)]
    assert parts[1] == first
    assert windows_of(gateway, f"/v1/windows/{first['window']}") == parts
    older = windows_of(gateway, f"/v1/windows/{first['window'] - 2_000}")
    assert [w["offset"] for w in older] == [4, 1]


def test_windows_cannot_be_read_without_redis() -> None:
    """The latest quotes are there all the same."""
    with running_gateway(f"redis://127.0.0.1:{free_port()}/0") as gateway:
        assert gateway.get("/v1/quotes")[0] == 200
        for path in ("/v1/windows", "/v1/windows/7"):
            status, body = gateway.get(path)
            assert (status, json.loads(body)["code"]) == (503, "unavailable")


async def test_many_windows_are_read_once_and_in_slices(
    publisher: Publisher, redis_url: str
) -> None:
    """Others come to their turn between two windows; all who ask share an answer."""
    for seq in range(1, 13):
        publisher.publish(make_row(seq=seq))
    connection = create_redis(redis_url)
    window_log = WindowLog(connection, publisher.keys)
    board = make_board()
    prepared = PreparedWindows(
        board, Builds(Counters()), ConditionalAnswers(varies=False)
    )
    reads = 0

    def read(_: Position) -> AsyncIterator[WindowSnapshot]:
        nonlocal reads
        reads += 1
        return window_log.newest(12)

    async def ask() -> bytes:
        caller = Caller(EVERYTHING, Instruments(), board)
        answer = await prepared.give(make_request(), caller, "12", read, with_rows=True)
        return bytes(answer.body)

    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    others = asyncio.create_task(take_turns())
    first, second = await asyncio.gather(ask(), ask())
    others.cancel()
    assert turns >= 12
    assert reads == 1
    assert first == second
    assert json.loads(first)["count"] == 12
    await connection.aclose()


def test_an_answer_ends_when_it_is_long_enough(
    listed: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the window that makes it so: there is always one."""
    monkeypatch.setattr(windows, "MAX_BYTES", 100)
    assert [w["offset"] for w in windows_of(listed, "/v1/windows?limit=9")] == [3]
