"""The archive stores every closed and amended bar, whatever happens to it."""

from decimal import Decimal
from pathlib import Path

import pytest
import redis

from archive.archive_process import open_counts
from archive.contract.archive_gap import find_gaps
from archive.contract.segment import day_of
from archive.parquet.bar_reader import BarReader
from archive.settings import ArchiveSettings
from tests.archive.bar_rig import (
    BAR_LOG,
    INSTRUMENTS,
    amend,
    close_minutes,
    logged_bars,
    minute_ends,
    newest_number,
    stored_lines,
    take_back,
    wait_until_bars_stored,
)
from tests.archive.postgres.server import PostgresServer
from tests.archive.rig import (
    archiving,
    crash,
    publish,
    settings_of,
    state_of,
    wait_until_stored,
)
from tests.conftest import eventually
from tests.gateway.bar_publisher import FIRST_MS, MINUTE_MS, make_bar
from tests.gateway.publisher import Publisher
from tests.gateway.samples import HYNIX, SAMSUNG
from tests.throttle.analytics.bars.bar_writer import BarWriter

pytestmark = pytest.mark.redis

EVERY = 0, 2**53
MINUTES_A_DAY = 1_440
LEASE = "tt:lease:archive:{}"


@pytest.fixture
def writer(client: redis.Redis) -> BarWriter:
    """What publishes bars, through the job's own sink and script."""
    return BarWriter(client)


def check_whole(client: redis.Redis, settings: ArchiveSettings) -> None:
    """Hold what is stored to the bar log: each bar once, the newest."""
    wanted = {key: bar.edition for key, bar in logged_bars(client).items()}
    assert open_counts(settings).bars(*EVERY) == wanted
    assert open_counts(settings).bar_counts(*EVERY) == {MINUTE_MS: len(wanted)}
    if not settings.postgres_url:
        reader = BarReader(settings.archive_dir)
        for isin in INSTRUMENTS:
            of_instrument = [b for b in logged_bars(client).values() if b.isin == isin]
            found = reader.newest(isin, MINUTE_MS, *EVERY, 10_000)
            assert found == sorted(of_instrument, key=lambda bar: bar.start_ms)


def test_every_closed_bar_is_stored_and_the_newest_amendment_counts(
    client: redis.Redis, writer: BarWriter, redis_url: str, tmp_path: Path
) -> None:
    """An open bar is not stored; a sum that did not fit is null. Windows go on."""
    settings = settings_of(redis_url, tmp_path)
    close_minutes(writer, 0, 3)
    amend(writer, 1)
    take_back(writer, 0)
    unfit = make_bar(SAMSUNG, 3, "0.30 100 0.10 7.5")
    writer.publish(
        type(unfit)(
            *(unfit.isin, unfit.start_ms, unfit.end_ms, unfit.open, unfit.high),
            *(unfit.low, unfit.close, None, None, unfit.trades, False, 0),
        ),
        make_bar(SAMSUNG, 4),
        make_bar(HYNIX, 3, "- - - -"),
        clock_ms=minute_ends(3),
    )
    publish(Publisher(client), 2)
    with archiving(settings):
        state = wait_until_bars_stored(client, 7)
        wait_until_stored(client, 2)
    check_whole(client, settings)
    assert (state.bars, state.bar_gaps) == (3 * 3 + 1 + 2 + 2, 0)
    unpriced, last = stored_lines(tmp_path)[-2:]
    assert (unpriced["open"], unpriced["low"], unpriced["volume"]) == (None, None, 40)
    assert (last["open"], last["low"]) == (Decimal("0.30"), Decimal("0.10"))
    assert (last["volume"], last["value"], last["width_ms"]) == (None, None, MINUTE_MS)
    [amended] = BarReader(tmp_path).newest(
        SAMSUNG, MINUTE_MS, FIRST_MS + MINUTE_MS, FIRST_MS + MINUTE_MS, 9
    )
    assert (amended.trades, amended.revision, amended.volume) == (5, 1, 50)
    first = SAMSUNG, MINUTE_MS, FIRST_MS, FIRST_MS, 9
    [poorer] = BarReader(tmp_path).newest(*first)
    assert (poorer.trades, poorer.revision, poorer.volume) == (2, 1, 20)
    assert not BarReader(tmp_path).newest(SAMSUNG, 1_000, *EVERY, 9)


def test_a_restart_goes_on_and_a_merge_keeps_the_newest(
    client: redis.Redis, writer: BarWriter, redis_url: str, tmp_path: Path
) -> None:
    """Nothing is noted down anywhere else; files stay few."""
    settings = settings_of(redis_url, tmp_path)
    for n in range(9):
        close_minutes(writer, n)
        amend(writer, n)
        with archiving(settings):
            wait_until_bars_stored(client, newest_number(client))
        check_whole(client, settings)
    assert len(BarReader(tmp_path).segments()) < 6
    merged = [line for line in stored_lines(tmp_path) if line["isin"] == SAMSUNG]
    assert len(merged) < 18


def test_bars_are_in_the_folder_of_their_day(
    client: redis.Redis, writer: BarWriter, redis_url: str, tmp_path: Path
) -> None:
    """A batch that closes bars of two days has two entries.

    Once the earlier day is removed, what was amended of it is no loss.
    """
    settings = settings_of(redis_url, tmp_path, archive_days=1)
    writer.publish(
        make_bar(SAMSUNG, MINUTES_A_DAY - 1),
        make_bar(SAMSUNG, MINUTES_A_DAY),
        clock_ms=minute_ends(MINUTES_A_DAY),
    )
    amend(writer, MINUTES_A_DAY - 1)
    close_minutes(writer, MINUTES_A_DAY + 1)
    with archiving(settings):
        wait_until_bars_stored(client, 4)
        eventually(lambda: state_of(client).bars == 6, 20)
        eventually(lambda: len(BarReader(tmp_path).segments()) == 2, 20)
    days = {day_of(segment.first_ms) for segment in BarReader(tmp_path).segments()}
    assert days == {day_of(minute_ends(MINUTES_A_DAY))}
    gaps = find_gaps(BarReader(tmp_path).segments(), "bars")
    assert [(gap.kind, gap.windows) for gap in gaps] == [("before", 1), ("before", 1)]


def test_a_trimmed_log_leaves_a_gap_with_a_name(
    client: redis.Redis, writer: BarWriter, redis_url: str, tmp_path: Path
) -> None:
    """Counted in entries, which are numbered without holes."""
    settings = settings_of(redis_url, tmp_path)
    close_minutes(writer, 0, 2)
    with archiving(settings):
        wait_until_bars_stored(client, 2)
    close_minutes(writer, 2, 5)
    newest = client.xrevrange(BAR_LOG, count=2)[-1][0]
    client.xtrim(BAR_LOG, minid=newest, approximate=False)
    with archiving(settings):
        state = wait_until_bars_stored(client, 7)
    assert (state.bar_gaps, state.missing_bar_batches) == (1, 3)
    assert (state.gaps, state.missing_windows) == (0, 0)
    [gap] = find_gaps(BarReader(tmp_path).segments(), "bars")
    assert (gap.kind, gap.windows) == ("trimmed", 3)
    assert state.last_gap == gap.text
    assert "3 batches of bars of epoch b7x1" in gap.text


@pytest.mark.parametrize("step", ["copied", "put", "committed"])
def test_a_database_has_every_bar_once_whatever_is_killed(
    step: str,
    client: redis.Redis,
    writer: BarWriter,
    server: PostgresServer,
    redis_url: str,
    tmp_path: Path,
) -> None:
    """Renewed by a newer amendment only; with the digits that were published."""
    settings = settings_of(redis_url, tmp_path, postgres_url=server.url())
    close_minutes(writer, 0, 2)
    amend(writer, 0, trades=6)
    take_back(writer, 1)
    crash(settings, step, is_killed=step == "put")
    client.delete(LEASE.format("postgres"))
    close_minutes(writer, 2)
    with archiving(settings):
        wait_until_bars_stored(client, 6, "postgres")
        client.delete(BAR_LOG, *client.keys("tt:analytics*"), *client.keys("tt:bars*"))
        # Made again from what was left of a trade log: with fewer trades.
        anew = BarWriter(client, epoch="anew", term=2)
        anew.publish(
            make_bar(SAMSUNG, 0, trades=5),
            make_bar(SAMSUNG, 3, "0.30 0.30 0.30 0.30"),
            make_bar(SAMSUNG, 4, "- 0.30 0.30 -"),
            clock_ms=minute_ends(4),
        )
        eventually(lambda: state_of(client, "postgres").bar_epoch == "anew", 20)
    rows = server.ask(
        "SELECT trades, open::text, epoch FROM tickthrottle_bars "
        f"WHERE isin = '{SAMSUNG}' ORDER BY start"
    )
    assert rows == [
        (6, "100", "b7x1"),
        (2, "100", "b7x1"),
        (4, "100", "b7x1"),
        (4, "0.3", "anew"),
        (4, None, "anew"),
    ]
    assert len(server.ask("SELECT 1 FROM tickthrottle_bars")) == 11
    [day] = open_counts(settings).bar_lines().items()
    assert day == (day_of(minute_ends(0)), 15)
    assert server.ask("SELECT epoch, number, bars FROM tickthrottle_bar_batches") == [
        *(("b7x1", 1, 3), ("b7x1", 2, 3), ("b7x1", 3, 1), ("b7x1", 4, 1)),
        *(("b7x1", 5, 1), ("b7x1", 6, 3)),
        ("anew", 1, 3),
    ]


def test_what_no_analytics_job_wrote_is_one_sentence(
    client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    entry = {"epoch": "b7x1", "number": 1, "published": 5}
    line = f"{SAMSUNG} 0 60000 1 1 1 1 1 1 1 0 0"
    late = f"{SAMSUNG} 86400000 86460000 1 1 1 1 1 1 1 1 0"
    for bars, words in (
        ("nonsense", "entry 1 of epoch b7x1: a line is no bar"),
        (line, "entry 1 of the bar log: a line is no closed bar"),
        (f"{line}\n{late}", "bars of 1970-01-01 and of 1970-01-02"),
    ):
        client.delete(BAR_LOG)
        client.xadd(BAR_LOG, {**entry, "bars": bars})
        with archiving(settings_of(redis_url, tmp_path)) as ends:
            eventually(lambda: ends, 20)
        assert words in str(ends[0])
        client.delete(LEASE.format("parquet"))
