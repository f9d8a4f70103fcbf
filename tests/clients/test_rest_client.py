"""The past over REST from Python: pages, digits, gaps, refusals, data frames."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import redis

from tests.conftest import eventually, leave_out
from tests.data_frames import run_with_frames
from tests.dead_proxy import DEAD_PROXY
from tests.doc_pages import blocks
from tests.gateway.bar_publisher import FIRST_MS, BarPublisher, make_bar
from tests.gateway.issuer import SECRET, make_token
from tests.gateway.publisher import Publisher
from tests.gateway.rest.test_quote_history import end_of, gateway
from tests.gateway.samples import SAMSUNG, make_row
from tests.gateway.servers import Gateway, running_gateway
from tests.ports import free_port
from tickthrottle_client import Records, RestClient, RestError, rest_client

pytestmark = pytest.mark.redis

__all__ = ["gateway"]


def address(port: int) -> str:
    return f"http://127.0.0.1:{port}"


@pytest.mark.parametrize("page", [2, 20_000])
def test_a_history_is_read_page_by_page(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    """To its end, with every digit, and with what is missing in between."""
    monkeypatch.setattr(rest_client, "PAGE", page)
    for name in DEAD_PROXY:
        monkeypatch.setenv(name, DEAD_PROXY[name])
    past = RestClient(address(gateway.port))
    found = past.history("005930", since=0)
    assert [row["window"] for row in found] == [
        end_of(offset) for offset in (1, 2, 4, 5, 6, 7, 8)
    ]
    assert str(found[-1]["price"]) == "8.50"
    assert [gap["windows"] for gap in found.gaps] == [1]
    since = datetime.fromtimestamp(end_of(2) / 1_000, UTC)
    some = past.history(SAMSUNG, since=since, until=end_of(7), limit=3)
    assert [row["window"] for row in some] == [end_of(offset) for offset in (2, 4, 5)]
    newest = past.history(SAMSUNG, limit=2)
    assert [row["window"] for row in newest] == [end_of(7), end_of(8)]


def test_bars_are_a_table(publisher: Publisher, redis_url: str) -> None:
    """Decimals are decimals, times are times."""
    publisher.publish(make_row(SAMSUNG, "1"))
    bars = BarPublisher(publisher._client)
    bars.publish(make_bar(value="4200.5", closed=True), make_bar(minute=1, volume="7"))
    with running_gateway(redis_url) as gateway:
        gateway.wait_until(1)
        found = RestClient(address(gateway.port)).bars(SAMSUNG, since=FIRST_MS)
    assert found[0]["value"] == Decimal("4200.5")
    assert len(found[:]) == len(found) == 2
    table = found.to_arrow()
    assert table.schema.field("value").type == pa.decimal128(38, 18)
    assert table.schema.field("start").type == pa.timestamp("ms", "UTC")
    assert table.schema.field("closed").type == pa.bool_()
    # 4,200 by seven is not finite.
    assert table["vwap"].to_pylist() == [Decimal("105.0125"), Decimal(600)]


def test_the_example_of_the_page_prints_tables(
    gateway: Gateway, client: redis.Redis
) -> None:
    """Of windows and of bars; only the port differs."""
    BarPublisher(client).publish(make_bar(closed=True))
    past = RestClient(address(gateway.port))
    eventually(lambda: past.bars(SAMSUNG, "5m")[:])
    [example] = blocks("docs/clients.md", "py")
    told = "\n".join(run_with_frames(example.replace(":8000", f":{gateway.port}")))
    of_windows, _, of_bars = told.partition("KR7005930003 2026-03-20")
    assert "8.50" in of_windows
    assert "[1 rows x " in of_bars


def test_a_frame_of_pandas_keeps_decimals() -> None:
    """A price is no float there."""
    told = run_with_frames(
        """
from decimal import Decimal
from tickthrottle_client import Records
third = Decimal(1) / 3
rows = [{"window": 1773964800000, "price": Decimal("0.10"), "vwap": third, "trades": 2}]
records = Records(rows, [])
frame = records.to_pandas()
print(repr(frame.price[0]), frame.window[0], frame.vwap[0], frame.trades.sum())
print(len(Records([], []).to_pandas()))
"""
    )
    price, third = "Decimal('0.10')", Decimal(1) / 3
    assert told[0] == f"{price} 2026-03-20 00:00:00+00:00 {third} 2"
    assert told[1] == "0"


def test_a_frame_of_polars_keeps_decimals() -> None:
    """With 18 places, as in Arrow; a mean is rounded to them."""
    if find_spec("polars") is None:
        leave_out("a data frame of Polars: polars is not installed")
    third = Decimal(1) / 3
    row = {"window": 1773964800000, "price": Decimal("0.10"), "vwap": third}
    [found] = Records([row], []).to_polars().to_dicts()
    assert found == {
        "window": datetime(2026, 3, 20, tzinfo=UTC),
        "price": Decimal("0.10"),
        "vwap": Decimal("0." + "3" * 18),
    }
    assert len(Records([], []).to_polars()) == 0


def test_a_token_is_shown(publisher: Publisher, redis_url: str, tmp_path: Path) -> None:
    """And who has none is told so, by the gateway's own words."""
    publisher.publish(make_row(SAMSUNG, "1"))
    path = tmp_path / "key"
    path.write_text(SECRET)
    with running_gateway(redis_url, token_key_file=path) as gateway:
        gateway.wait_until(1)
        with pytest.raises(RestError, match="no header Authorization") as refused:
            RestClient(address(gateway.port)).history(SAMSUNG)
        assert refused.value.status == 401
        past = RestClient(address(gateway.port), token=make_token())
        # Of the windows before its start a gateway is told a moment later.
        eventually(lambda: len(past.history(SAMSUNG)) == 1)
        with pytest.raises(RestError, match=r"\(404\)"):
            past.history("999999")


class Answers(BaseHTTPRequestHandler):
    """Gives one prepared answer after the other."""

    prepared: list[tuple[int, dict[str, str], bytes]]

    def do_GET(self) -> None:
        status, headers, body = self.prepared.pop(0)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def answering(*prepared: tuple[int, dict[str, str], bytes]) -> Iterator[str]:
    """Run a server that answers so; yield its address."""
    handler = type("Prepared", (Answers,), {"prepared": list(prepared)})
    with HTTPServer(("127.0.0.1", free_port()), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/ticks/"
        finally:
            server.shutdown()
            thread.join()


GOOD = json.dumps({"data": [], "gaps": [], "next": None}).encode()


def test_who_asks_too_much_comes_again_when_he_is_told() -> None:
    """And gives up in the end, or where nobody says when."""
    busy = (429, {"Retry-After": "0"}, b'{"detail":"too much"}')
    with answering(busy, busy, (200, {}, GOOD)) as url:
        assert len(RestClient(url).history(SAMSUNG)) == 0
    with answering(*[busy] * 9) as url, pytest.raises(RestError, match="too much"):
        RestClient(url).history(SAMSUNG)
    away = (503, {}, b"no")
    with answering(away, away) as url, pytest.raises(RestError, match="503"):
        RestClient(url).history(SAMSUNG)


def test_what_is_no_answer_is_told_in_a_sentence() -> None:
    """A page of a proxy, perhaps."""
    for body in (
        b"<html>",
        b"[]",
        b'{"data":1,"gaps":[]}',
        b'{"data":[]}',
        b"[" * 100_000,
    ):
        with (
            answering((200, {}, body)) as url,
            pytest.raises(RestError, match="none of a gateway's answers"),
        ):
            RestClient(url).history(SAMSUNG)


def test_words_of_a_gateway_cannot_act_on_a_terminal() -> None:
    """Control characters are escaped."""
    detail = json.dumps({"detail": "\x1b]0;x\x07"}).encode()
    with answering((400, {}, detail)) as url, pytest.raises(RestError) as refused:
        RestClient(url).history(SAMSUNG)
    assert "\x1b" not in str(refused.value)


def test_without_a_gateway_it_says_so() -> None:
    """With the address."""
    url = address(free_port())
    with pytest.raises(RestError, match=f"no gateway answers at {url}"):
        RestClient(url).bars(SAMSUNG)


def test_what_cannot_be_asked_is_refused() -> None:
    """By the name of what is wrong."""
    with pytest.raises(ValueError, match="url 'ws://127"):
        RestClient("ws://127.0.0.1:8000/v1/stream")
    past = RestClient("http://127.0.0.1:1")
    with pytest.raises(ValueError, match=r"since .*: must have a time zone"):
        past.history(SAMSUNG, since=datetime(2026, 3, 20))  # noqa: DTZ001
