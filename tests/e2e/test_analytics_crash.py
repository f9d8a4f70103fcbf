"""The analytics job killed for real; a hundred kills: `run_analytics_crashes`.

The named points without a process to kill are in
tests/throttle/analytics/test_analytics_job.py.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
import redis

from ingest.redis_keys import AnalyticsKeys
from tests.e2e.analytics_crash import ISINS, MOVES, STANDS, AnalyticsCrasher
from tests.gateway.bar_listener import check_clients, figures_of, listening
from tests.gateway.servers import running_gateway
from tests.quick_java import QUICK_JAVA
from tests.redis_users import documented_users, url_of
from throttle.contract.tally import BatchNote

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.timeout(400),
]


Bars = Mapping[tuple[str, int], Mapping[str, Any]]


@pytest.fixture
def crasher(
    client: redis.Redis, redis_url: str, tmp_path: Path
) -> Iterator[AnalyticsCrasher]:
    """A job with no more rights than it needs, on a feed that goes on."""
    with documented_users(client):
        user_url = url_of("tt-analytics", redis_url)
        with AnalyticsCrasher(client, user_url, tmp_path) as crasher:
            yield crasher


def in_state(folder: Path, isin: str, *arguments: str) -> list[dict[str, Any]]:
    """Return what Spark's state holds of an instrument, as the command shows it."""
    command = [sys.executable, "-m", "tickthrottle", "state", "--json", "--isin", isin]
    options = ["--state-dir", str(folder / "state"), "--limit", "10000"]
    environment = {**os.environ, **QUICK_JAVA}
    done = subprocess.run(
        [*command, *options, *arguments],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(s, parse_float=Decimal) for s in done.stdout.splitlines()]
    assert {row["isin"] for row in rows} == {isin}
    return rows


def newest_batch(client: redis.Redis, product: str) -> int:
    """Return the newest batch that has counted a trade: its state holds some."""
    batches: Any = client.xrevrange(AnalyticsKeys("tt").batches(product))
    for _, fields in batches:
        note = BatchNote.decode(fields[b"note"])
        if any(tally.counted for tally in note.tallies.values()):
            return int(fields[b"batch"])
    raise AssertionError("no trade was counted")


def check_trades(rows: list[dict[str, Any]]) -> None:
    """Each held trade has the extremes of those held of its span."""
    for row in rows:
        since_us = row["time"] - MOVES.span_us
        place = row["time"], row["seq"]
        held = [
            other["price"]
            for other in rows
            if since_us <= other["time"] and (other["time"], other["seq"]) <= place
        ]
        assert (row["lowest"], row["highest"]) == (min(held), max(held))


def test_a_killed_job_misses_and_doubles_nothing(
    crasher: AnalyticsCrasher, client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    """Every bar and move is as the oracle says, in Redis, over REST and at a client.

    The books balance, and the command that asks Spark's state says the same of bars
    of which no trade was taken back;
    of moves it shows the trades with the extremes of their spans.
    """

    def compare_too(expected: Bars) -> None:
        check_clients(gateway, listener, expected)
        isin = STANDS
        of_one = {place: bar for place, bar in expected.items() if place[0] == isin}
        held = in_state(tmp_path, isin)
        assert {(isin, bar["start"]): figures_of(bar) for bar in held} == of_one
        batch = str(newest_batch(client, "moves"))
        check_trades(in_state(tmp_path, isin, "--product", "moves", "--batch", batch))

    with (
        running_gateway(url_of("tt-gateway", redis_url)) as gateway,
        listening(gateway, ISINS) as listener,
    ):
        assert crasher.crash_once("state_written", Random(5), compare_too) >= 15
