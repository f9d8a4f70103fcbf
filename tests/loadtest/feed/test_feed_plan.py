"""What is fed, and when each trade of it is due."""

from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from ingest.sources.event import Refusals
from ingest.sources.rate_profile import Profile
from ingest.sources.replay import ReplayOptions
from ingest.sources.simulator import Simulator
from ingest.sources.tape import TapeError
from ingest.trade import Trade
from loadtest.feed.feed_plan import FeedPlan

RECORDED_US = 1_448_539_200_000_000
START_US = 1_773_964_800_000_000
ISINS = ("KR7005930003", "KR7000660001")


def make_tape(path: Path, isin: str, times_us: range) -> Path:
    """Write a tape of one instrument with the given times after RECORDED_US."""
    lines = [
        Trade(isin, RECORDED_US + time_us, seq, "1", "1").to_wire()
        for seq, time_us in enumerate(times_us)
    ]
    path.write_bytes(b"\n".join(lines))
    return path


def market(profile: Profile, seconds: float | None = None, **options: Any) -> FeedPlan:
    return FeedPlan(Simulator(profile=profile, **options), seconds=seconds)


def played(
    tapes: tuple[Path, ...], seconds: float | None = None, **options: Any
) -> FeedPlan:
    return FeedPlan(ReplayOptions(**options), tapes, seconds)


@pytest.fixture
def tapes(tmp_path: Path) -> tuple[Path, ...]:
    """Two tapes: 100 trades within 1 s, 10 trades within 2 s."""
    return (
        make_tape(tmp_path / "a.jsonl", ISINS[0], range(0, 1_000_000, 10_000)),
        make_tape(tmp_path / "b.jsonl", ISINS[1], range(0, 2_000_000, 200_000)),
    )


def dues_us(plan: FeedPlan, at_most: int = 10_000) -> list[int]:
    events = plan.prepare(Refusals())(START_US)
    return [event.due_us for event in islice(events, at_most)]


@pytest.mark.parametrize("seconds", [None, 0.75])
def test_a_simulated_market_has_its_profile_s_trades(seconds: float | None) -> None:
    """As many as are due by a time, late ones apart."""
    profile = Profile.parse("100..900:1s,500:1s")
    dues = dues_us(market(profile, seconds, instruments=20, disorder=0.0))
    assert len(dues) == int(profile.trades(seconds or 2))
    for at_s in (0.1, 0.5):
        due = sum(us < at_s * 1e6 for us in dues)
        assert due == pytest.approx(profile.trades(at_s), abs=10)


def test_tapes_are_due_by_their_own_times(tapes: tuple[Path, ...]) -> None:
    """All of them at once, each as often as asked for, up to the end of the time."""
    assert len(dues_us(played(tapes, loop=3, speed=2.0))) == 330
    assert max(dues_us(played(tapes, loop=0, seconds=5.0))) < 5_000_000


def test_instruments_come_by_popularity(tapes: tuple[Path, ...]) -> None:
    """Of a market by its listing, of tapes by their trades."""
    assert played(tapes[::-1]).isins() == ISINS
    isins = market(Profile.steady(9), instruments=30).isins()
    assert len(set(isins)) == 30


def test_words_say_what_is_fed(tapes: tuple[Path, ...]) -> None:
    """The source, the pace, and what is done to the trades."""
    simulated = market(Profile.parse("900"), malformed=0.005)
    assert simulated.words == (
        "simulated market, 2,879 instruments, 900/s, 0.005 malformed"
    )
    replayed = played(tapes, speed=10)
    assert replayed.words == "tape a.jsonl, tape b.jsonl, 10 x its own pace"


def test_a_missing_tape_is_told_before_the_start(tmp_path: Path) -> None:
    """By what prepares the feed and by what names its instruments."""
    plan = played((tmp_path / "none",))
    for prepare in (lambda: plan.prepare(Refusals()), plan.isins):
        with pytest.raises(TapeError, match="cannot be read"):
            prepare()
