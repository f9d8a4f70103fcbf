"""What a speed and a stamp of a tape do to windows, as docs/running.md says it."""

from pathlib import Path
from typing import Any

import pytest

from ingest.sources.event import Refusals
from ingest.sources.replay import Replay, ReplayOptions
from ingest.trade import Trade
from tests.doc_pages import text_of
from tests.gateway.samples import SAMSUNG
from throttle.testing.driver import START_MS, ThrottleDriver

pytestmark = pytest.mark.redis

RECORDED_US = 1_448_539_200_000_000
SECONDS = 40


def played(folder: Path, **options: Any) -> list[dict[str, Any]]:
    """Return the rows of the windows of a tape of a trade a second, as it is played."""
    trades = (
        Trade(SAMSUNG, RECORDED_US + n * 1_000_000, n, str(n + 1), "1", {})
        for n in range(SECONDS)
    )
    tape = folder / "tape.jsonl"
    tape.write_bytes(b"\n".join(trade.to_wire() for trade in trades))
    replay = Replay([tape], ReplayOptions(**options))
    at_ms = 0
    with ThrottleDriver() as driver:
        for event in replay.events(START_MS * 1_000, Refusals()):
            at_ms = event.due_us // 1_000
            driver.payload(event.payload, at_ms=at_ms)
        driver.turn_clock(at_ms + 4_000)
        return [one.fields(SAMSUNG) for one in driver.windows() if one.rows]


def test_at_ten_a_window_holds_twenty_seconds_of_the_tape(tmp_path: Path) -> None:
    """And at one two."""
    for speed, held in ((1, 2), (10, 20)):
        rows = played(tmp_path, speed=speed)
        assert [row["trades"] for row in rows] == [held] * (SECONDS // held)
    said = "a window of two seconds holds twenty seconds of the tape"
    assert f"At ten times its pace {said}" in text_of("README.md")
    assert f"At `--speed 10` {said}" in text_of("docs/running.md")


def test_with_recorded_stamps_no_price_moves_from_the_second_pass_on(
    tmp_path: Path,
) -> None:
    """Its trades are counted all the same, in the same windows."""
    now = played(tmp_path, stamp="now", loop=2)
    recorded = played(tmp_path, stamp="recorded", loop=2)
    assert [row["trades"] for row in recorded] == [row["trades"] for row in now]
    second = [row["price"] for row in recorded[SECONDS // 2 :]]
    assert second == [str(SECONDS)] * (SECONDS // 2)
    assert len({row["price"] for row in now}) > SECONDS // 2
    said = "from the second pass on no price moves"
    assert said in text_of("docs/running.md").split("### Tapes")[1]
