"""REST: what an instrument did, from the archive and from memory."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from ingest.redis_keys import Keys
from tests.archive.rig import archiving, settings_of, wait_until_stored
from tests.conftest import eventually
from tests.gateway.publisher import Publisher
from tests.gateway.samples import FIRST_WINDOW, HYNIX, SAMSUNG, make_row
from tests.gateway.servers import Gateway, running_gateway

pytestmark = pytest.mark.redis


def end_of(offset: int) -> int:
    """Return the end of the window with this offset."""
    return FIRST_WINDOW + offset * 2_000


@pytest.fixture
def gateway(client: redis.Redis, redis_url: str, tmp_path: Path) -> Iterator[Gateway]:
    """A gateway with an archive: windows 1 to 6 are stored, 7 and 8 are not.

    Redis has forgotten all before the fifth; the archive lacks the third.
    """
    publisher = Publisher(client, window_ms=60_000)
    publisher.list_instruments()
    settings = settings_of(redis_url, tmp_path)
    for first, last in ((1, 2), (3, 6)):
        for offset in range(first, last + 1):
            publisher.publish(
                make_row(SAMSUNG, f"{offset}.50", offset, 2),
                make_row(HYNIX, seq=offset),
            )
        if first == 3:
            client.xtrim(Keys("tt").windows, minid="4-0", approximate=False)
        with archiving(settings):
            wait_until_stored(client, last)
    client.xtrim(Keys("tt").windows, minid="5-0", approximate=False)
    for offset in (7, 8):
        publisher.publish(make_row(SAMSUNG, f"{offset}.50", offset, 2))
    with running_gateway(redis_url, archive_dir=tmp_path) as running:
        running.wait_until(8)
        eventually(lambda: len(ask(running, "")["data"]) == 7)
        yield running


def ask(gateway: Gateway, query: str, instrument: str = SAMSUNG) -> dict[str, Any]:
    """Return the history of an instrument."""
    status, body = gateway.get(f"/v1/quotes/{instrument}/history{query}")
    answer: dict[str, Any] = json.loads(body, parse_float=str)
    assert (status, answer["count"]) == (200, len(answer["data"]))
    return answer


def test_archive_and_memory_make_one_history(gateway: Gateway) -> None:
    """Oldest first, with the digits that were published; what is missing is named."""
    answer = ask(gateway, "")
    stored = (1, 2, 4, 5, 6, 7, 8)
    assert [p["window"] for p in answer["data"]] == [end_of(n) for n in stored]
    assert [p["price"] for p in answer["data"]] == [f"{n}.50" for n in stored]
    assert answer["data"][0] == {
        "window": end_of(1),
        "price": "1.50",
        "size": 40,
        "trades": 2,
        "time": FIRST_WINDOW * 1_000 + 1,
    }
    gap = {"kind": "trimmed", "after": end_of(2), "before": end_of(4), "windows": 1}
    assert (answer["gaps"], answer["next"]) == ([gap], None)
    assert ask(gateway, "", "005930") == answer


def test_bounds_and_limits(gateway: Gateway) -> None:
    """The newest are told, or the oldest since a beginning, and what follows."""

    def offsets(query: str) -> list[int]:
        found = ask(gateway, query)["data"]
        return [(point["window"] - FIRST_WINDOW) // 2_000 for point in found]

    assert offsets("?limit=3") == [6, 7, 8]
    assert offsets(f"?to={end_of(4)}&limit=2") == [2, 4]
    assert offsets(f"?from={end_of(2)}&to={end_of(5)}") == [2, 4, 5]
    assert offsets("?from=0&limit=3") == [1, 2, 4]
    assert offsets(f"?from={end_of(9)}") == []
    assert ask(gateway, "?from=0&limit=3")["next"] == end_of(5)
    assert ask(gateway, f"?from={end_of(5)}")["next"] is None


def test_a_bad_question_is_answered_with_the_field(gateway: Gateway) -> None:
    for query in [
        *("limit=0", "limit=20001", "from=-1", "to=soon"),
        *("to=9223372036854775808", "from=253370764800001", f"from={10**30}"),
    ]:
        status, body = gateway.get(f"/v1/quotes/{SAMSUNG}/history?{query}")
        assert status == 400
        assert json.loads(body)["detail"].startswith(query.partition("=")[0] + ": ")
        if not query.startswith("limit="):
            assert gateway.get(f"/v1/windows?{query}")[0] == 400
        assert gateway.get(f"/v1/windows/{2**63}")[0] == 400


def test_windows_go_on_in_the_archive(gateway: Gateway) -> None:
    """Where the window log ends, each once, newest first, as they were published."""

    def offsets(query: str) -> list[int]:
        found = json.loads(gateway.get(f"/v1/windows?{query}")[1])["data"]
        return [window["offset"] for window in found]

    assert offsets("") == [8, 7, 6, 5, 4, 2, 1]
    assert offsets("limit=5") == [8, 7, 6, 5, 4]
    assert offsets(f"to={end_of(4)}") == [4, 2, 1]
    assert offsets(f"from={end_of(2)}&to={end_of(6)}") == [6, 5, 4, 2]
    status, body = gateway.get(f"/v1/windows/{end_of(2)}")
    [window] = json.loads(body)["data"]
    assert (status, window["offset"], window["count"]) == (200, 2, 2)
    assert b'"price":2.50,' in body
    assert gateway.get(f"/v1/windows/{end_of(3)}")[0] == 404


def test_what_cannot_be_read_is_left_out_and_named(
    gateway: Gateway, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """To strangers as a gap, to operators by its path; once in the log."""
    first, *_ = sorted(tmp_path.glob(".days/*/*_1-2_*"))
    for name in ("rows", "windows"):
        (first / f"{name}.parquet").write_bytes(b"no such thing")
    gap = {"kind": "damaged", "after": None, "before": end_of(4), "windows": 2}
    for _ in range(2):
        answer = ask(gateway, "")
        assert [p["window"] for p in answer["data"]] == [end_of(n) for n in range(4, 9)]
        assert answer["gaps"][0] == gap
        body = gateway.get("/v1/windows")[1]
        windows = json.loads(body)
        assert ([w["offset"] for w in windows["data"]], windows["gaps"]) == (
            [8, 7, 6, 5, 4],
            [gap],
        )
        assert tmp_path.name.encode() not in body
    assert json.loads(gateway.get("/v1/windows?limit=4")[1])["gaps"] == []
    status, body = gateway.get(f"/v1/windows/{end_of(1)}")
    assert (status, json.loads(body)["code"]) == (404, "unknown_window")
    shown = json.loads(gateway.operators.get("/v1/pipeline")[1])["archive_damage"]
    assert sorted(line.partition(": ")[0] for line in shown) == [
        str(first / "rows.parquet"),
        str(first / "windows.parquet"),
    ]
    assert capsys.readouterr().out.count("a damaged file of the archive") == 2


def test_a_folder_that_cannot_be_read_is_named_to_nobody(
    gateway: Gateway, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What Redis has is served all the same."""
    for link in tmp_path.glob("day=*"):
        link.unlink()
        link.symlink_to(link.name)
    status, body, headers = gateway.fetch(f"/v1/quotes/{SAMSUNG}/history")
    problem = json.loads(body)
    assert (status, problem["code"]) == (503, "unavailable")
    assert headers["retry-after"] == "1"
    assert problem["detail"] == "the archive cannot be read at the moment"
    assert gateway.get("/v1/windows?limit=4")[0] == 200
    assert str(tmp_path) in capsys.readouterr().out


def test_without_an_archive_memory_is_all_there_is(redis_url: str) -> None:
    """An instrument that has not traded has an empty history."""
    with running_gateway(redis_url) as gateway:
        assert ask(gateway, "")["data"] == []
