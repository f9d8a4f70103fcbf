"""REST: bars beyond what Redis keeps, from the archive."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.archive.bar_rig import (
    amend,
    close_minutes,
    minute_ends,
    wait_until_bars_stored,
)
from tests.archive.rig import archiving, settings_of
from tests.gateway.bar_publisher import FIRST_MS, MINUTE_MS, make_bar
from tests.gateway.issuer import SECRET, make_token
from tests.gateway.publisher import Publisher
from tests.gateway.samples import HYNIX, NAVER, SAMSUNG
from tests.gateway.servers import Gateway, running_gateway
from tests.throttle.analytics.bars.bar_writer import BarWriter

pytestmark = pytest.mark.redis


@pytest.fixture
def gateway(client: redis.Redis, redis_url: str, tmp_path: Path) -> Iterator[Gateway]:
    """A gateway with an archive of minutes 0 to 5, and the open one after them.

    Redis has minutes 4 and on of one instrument, of which it lost some trades, and
    nothing of another.
    """
    Publisher(client).list_instruments()
    writer = BarWriter(client)
    close_minutes(writer, 0, 6)
    amend(writer, 1)
    with archiving(settings_of(redis_url, tmp_path)):
        wait_until_bars_stored(client, 7)
    # After an outage, from what was left of the trade log.
    bars = writer.keys.bars(SAMSUNG)
    client.delete(bars, writer.keys.bars(HYNIX))
    poorer = make_bar(SAMSUNG, 4, trades=1, closed=True)
    client.zadd(bars, {poorer.encode(): poorer.start_ms})
    whole = make_bar(SAMSUNG, 5, closed=True)
    client.zadd(bars, {whole.encode(): whole.start_ms})
    writer.publish(make_bar(SAMSUNG, 6, trades=2), clock_ms=minute_ends(5) + 1_000)
    key = tmp_path / "token.key"
    key.write_text(SECRET)
    with running_gateway(
        redis_url, archive_dir=tmp_path, token_key_file=key
    ) as running:
        yield running


def ask(gateway: Gateway, query: str = "", instrument: str = SAMSUNG) -> list[Any]:
    """Return the bars of an answer."""
    status, body, _ = gateway.fetch(
        f"/v1/bars/{instrument}{query}", Authorization=f"Bearer {make_token(600)}"
    )
    assert status == 200, body
    return list(json.loads(body)["data"])


def minutes(bars: list[Any]) -> list[int]:
    """Return the minutes at which bars begin."""
    return [(bar["start"] - FIRST_MS) // MINUTE_MS for bar in bars]


def test_the_archive_goes_on_where_redis_ends(gateway: Gateway, tmp_path: Path) -> None:
    """Of a bar in both the newer counts; limits and rights are the same."""
    bars = ask(gateway)
    assert minutes(bars) == [0, 1, 2, 3, 4, 5, 6]
    assert [bar["trades"] for bar in bars] == [4, 5, 4, 4, 4, 4, 2]
    assert [bar["closed"] for bar in bars] == [*[True] * 6, False]
    assert (bars[1]["revision"], bars[1]["volume"]) == (1, 50)
    # Byte for byte as from Redis, where another instrument still is.
    other = ask(gateway, "?limit=1&to=" + str(FIRST_MS), NAVER)[0]
    assert bars[0] == {**other, "isin": SAMSUNG}
    assert minutes(ask(gateway, instrument="000660")) == [0, 1, 2, 3, 4, 5]
    assert minutes(ask(gateway, "?limit=4")) == [3, 4, 5, 6]
    inside = f"?from={FIRST_MS + 1}&to={FIRST_MS + 3 * MINUTE_MS}"
    assert minutes(ask(gateway, f"{inside}&limit=2")) == [2, 3]
    assert minutes(ask(gateway, inside)) == [1, 2, 3]
    assert ask(gateway, f"?from={FIRST_MS + MINUTE_MS}&to={FIRST_MS}") == []
    fives = ask(gateway, "?interval=5m")
    assert [(bar["trades"], bar["volume"]) for bar in fives] == [(21, 210), (6, 80)]
    [day] = ask(gateway, "?interval=1d")
    assert day["trades"] == 27
    only = f"Bearer {make_token(600, tick={'keys': [HYNIX]})}"
    assert gateway.fetch(f"/v1/bars/{SAMSUNG}", Authorization=only)[0] == 403
    assert gateway.get(f"/v1/bars/{SAMSUNG}")[0] == 401
    # And what cannot be read is named, as it is for windows.
    [day_folder] = tmp_path.glob("bars/day=*")
    for file in day_folder.glob("*/bars.parquet"):
        file.write_bytes(b"no Parquet")
    status, body, _ = gateway.fetch(
        f"/v1/bars/{SAMSUNG}", Authorization=f"Bearer {make_token(600)}"
    )
    answer = json.loads(body)
    assert (status, answer["count"]) == (200, 3)
    [gap] = answer["gaps"]
    assert (gap["kind"], gap["windows"]) == ("damaged", 7)
    assert tmp_path.name.encode() not in body
