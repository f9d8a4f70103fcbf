"""The test driver: the same scenarios by the rules alone and through real Spark."""

import plistlib
from functools import partial
from hashlib import sha256
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ingest.instrument_table.instrument_entry import InstrumentEntry
from ingest.schemas.avro_schema import AvroSchema
from ingest.schemas.framing import framed
from ingest.tradelog.contract import partition_of
from tests.gateway.samples import make_isins
from tests.ingest.schemas.registry_answers import TRADE, VALUES, answering
from tests.throttle.drivers import MakeDriver
from throttle.contract.dead_letter import KEPT_BYTES, LETTERS_PER_BATCH
from throttle.contract.snapshot import Row
from throttle.testing.driver import (
    CRASH_POINTS,
    CRASH_POINTS_IN_SPARK,
    START_MS,
    CrashPoint,
    ThrottleDriver,
)

pytestmark = pytest.mark.redis
A, B, C = "KR7005930003", "KR7000660001", "KR7035420009"


@pytest.fixture
def driver(make_driver: MakeDriver) -> ThrottleDriver:
    """A driver with the default settings."""
    return make_driver()


def test_the_latest_of_an_instrument_is_published_when_its_window_is_over(
    driver: ThrottleDriver,
) -> None:
    """Latest, exactly once: not before the end, and then once."""
    driver.trade(A, "70000", at_ms=100)
    driver.trade(A, "70100", at_ms=1_900)
    driver.turn_clock(1_999)
    assert driver.windows() == []
    driver.turn_clock(2_000)
    driver.turn_clock(2_001)
    [window] = driver.windows()
    assert window.end_ms == 2_000
    assert window.prices() == {A: "70100"}
    assert window.fields(A)["trades"] == 2
    total = driver.ledger().total
    assert (total.read, total.published, total.superseded) == (2, 1, 1)


def test_a_price_is_taken_back_by_one_that_adds_nothing_else(
    driver: ThrottleDriver,
) -> None:
    """As docs/feeding.md says of a trade that the exchange has cancelled."""
    driver.trade(A, "71900", at_ms=100, size="10")
    driver.trade(A, "99900", at_ms=2_100, size="1000")
    driver.trade(A, "71900", at_ms=4_100, size="10", updates="last")
    driver.turn_clock(6_000)
    fields = driver.windows()[-1].fields(A)
    assert (fields["price"], fields["trades"], fields["volume"]) == ("71900", 1, "0")
    assert "high" not in fields


def test_a_trade_at_the_boundary_belongs_to_the_next_window(
    driver: ThrottleDriver,
) -> None:
    """A window is [start, end)."""
    driver.trade(A, "1", at_ms=1_999)
    driver.trade(A, "2", at_ms=2_000)
    driver.turn_clock(4_000)
    assert [w.prices() for w in driver.windows()] == [{A: "1"}, {A: "2"}]


def test_quiet_windows_are_published_empty(driver: ThrottleDriver) -> None:
    """Prompt: a market that never opens, and one dead partition, hold up nothing."""
    driver.turn_clock(2_000)
    driver.turn_clock(4_000)
    driver.trade(A, "1", at_ms=5_000)
    driver.turn_clock(6_000)
    driver.turn_clock(66_000)
    windows = driver.windows()
    assert [w.end_ms for w in windows] == list(range(2_000, 66_001, 2_000))
    assert [w.end_ms for w in windows if w.rows] == [6_000]
    assert driver.ledger().problems() == []


def test_a_backlog_is_logged_window_by_window_and_told_once(
    driver: ThrottleDriver,
) -> None:
    """Never lost: missed windows are cut exactly; the stream gets one update."""
    for window in range(5):
        driver.trade(A, str(window + 1), at_ms=window * 2_000 + 500)
    driver.turn_clock(10_000)
    assert [w.prices()[A] for w in driver.windows()] == ["1", "2", "3", "4", "5"]
    [update] = driver.updates()
    assert (update.windows, update.prices()) == (5, {A: "5"})
    assert update.fields(A)["trades"] == 5


def test_a_batch_cuts_a_bounded_number_of_windows(make_driver: MakeDriver) -> None:
    """A backlog is worked off in pieces: memory does not grow with it."""
    driver = make_driver(max_windows_per_batch=3)
    driver.trade(A, "1", at_ms=100)
    driver.turn_clock(16_000)
    assert [u.windows for u in driver.updates()] == [3, 3, 2]
    assert len(driver.windows()) == 8


def test_an_older_trade_is_stale_and_a_newer_one_always_arrives(
    driver: ThrottleDriver,
) -> None:
    """Never backwards: the exchange's clock jumps back an hour, and forward again."""
    driver.trade(A, "1", at_ms=500)
    driver.turn_clock(2_000)
    driver.trade(A, "2", at_ms=2_500, time_ms=-3_600_000)
    driver.turn_clock(4_000)
    driver.trade(A, "3", at_ms=4_500)
    driver.turn_clock(6_000)
    assert [w.prices() for w in driver.windows()] == [
        {A: "1"},
        {A: "1"},
        {A: "3"},
    ]
    assert driver.ledger().total.stale == 1


def test_a_trade_from_2099_is_refused_and_holds_back_nobody(
    driver: ThrottleDriver,
) -> None:
    """Latest: one wrong stamp must not hold an instrument's price for ever."""
    driver.trade(A, "9", at_ms=100, time_ms=73 * 365 * 86_400_000)
    driver.trade(A, "1", at_ms=200)
    driver.turn_clock(2_000)
    [window] = driver.windows()
    assert window.prices() == {A: "1"}
    [letter] = driver.dead_letters()
    assert letter["reason"] == "future_time"
    assert driver.ledger().total.refused == {"future_time": 1}


def test_a_feed_whose_format_changed_is_counted_and_little_of_it_kept(
    driver: ThrottleDriver,
) -> None:
    """Accounted: the books balance, and letters are bounded in number and bytes."""
    payload = b'{"schema":2,"pad":"' + b"x" * 70_000 + b'"}'
    for _ in range(2 * LETTERS_PER_BATCH):
        driver.payload(b"<trade/>", at_ms=100)
    driver.payload(payload, at_ms=50, partition=1)
    driver.trade(A, "1", at_ms=200)
    driver.turn_clock(2_000)
    assert driver.windows()[0].prices() == {A: "1"}
    ledger = driver.ledger()
    assert ledger.problems() == []
    books = ledger.total
    assert books.refused == {"not_json": 2 * LETTERS_PER_BATCH, "too_large": 1}
    assert books.unkept == LETTERS_PER_BATCH
    letters = driver.dead_letters()
    assert len(letters) == LETTERS_PER_BATCH + 1
    [cut] = [letter for letter in letters if letter["reason"] == "too_large"]
    assert cut["trade"] == payload[:KEPT_BYTES].decode()
    assert cut["bytes"] == str(len(payload))
    assert cut["sha256"] == sha256(payload).hexdigest()
    assert all(sum(map(len, letter.values())) < 4_096 for letter in letters)


def test_an_instrument_spread_over_partitions_is_published_once(
    driver: ThrottleDriver,
) -> None:
    """Calm: one row per instrument and window, even of a log that is not keyed."""
    for partition in range(4):
        price = str(partition + 1)
        driver.trade(A, price, at_ms=100, time_ms=partition, partition=partition)
    driver.turn_clock(2_000)
    [window] = driver.windows()
    assert window.prices() == {A: "4"}
    assert window.fields(A)["trades"] == 4
    books = driver.ledger().partitions
    assert [(b.published, b.superseded) for b in books] == [(0, 1)] * 3 + [(1, 0)]


def test_jobs_that_share_the_partitions_publish_together_what_one_does(
    make_driver: MakeDriver,
) -> None:
    """Exactly once, latest, accounted for: by two jobs on halves of one log."""
    whole = make_driver(namespace="whole")
    halves = [
        make_driver(namespace="halves", job="low", only_partitions="0-1"),
        make_driver(namespace="halves", job="high", only_partitions="2,3"),
    ]
    isins = make_isins(12)
    assert {partition_of(isin, 4) for isin in isins} == {0, 1, 2, 3}
    for at_ms in range(0, 12_000, 150):
        isin = isins[at_ms // 150 * 7 % 12]
        late_ms = at_ms % 7 * 100
        for driver in (whole, halves[0]):
            driver.trade(isin, f"{at_ms}.50", at_ms=at_ms, time_ms=at_ms - late_ms)
            if at_ms % 1_050 == 0:
                junk = b"%d?" % at_ms
                driver.payload(junk, at_ms=at_ms, partition=partition_of(isin, 4))
        if at_ms % 4_050 == 0:
            for driver in (whole, *halves):
                driver.turn_clock(at_ms)
    for driver in (whole, *reversed(halves)):
        driver.turn_clock(12_000)
    published = halves[0].windows()
    assert [w.offset for w in published] == list(range(1, 13))
    together: dict[int, dict[str, Row]] = {}
    for window in published:
        rows = together.setdefault(window.end_ms, {})
        assert not rows.keys() & window.rows.keys()
        rows.update(window.rows)
    assert together == {w.end_ms: dict(w.rows) for w in whole.windows()}
    ledgers = [driver.ledger() for driver in halves]
    assert [ledger.upto.partitions for ledger in ledgers] == [(0, 1), (2, 3)]
    books = [one for ledger in ledgers for one in ledger.partitions]
    assert tuple(books) == whole.ledger().partitions
    assert [ledger.problems() for ledger in ledgers] == [[], []]
    letters = [one["trade"] for driver in halves for one in driver.dead_letters()]
    assert letters == [one["trade"] for one in whole.dead_letters()]
    assert len(letters) > 5


def test_a_job_on_one_partition_is_not_held_up_by_the_others(
    make_driver: MakeDriver,
) -> None:
    """Prompt: what nobody asked it to read does not matter to it."""
    driver = make_driver(only_partitions="1")
    driver.trade(A, "1", at_ms=100, partition=0)
    driver.trade(B, "2", at_ms=100, partition=1)
    driver.turn_clock(2_000)
    driver.restart_job()
    driver.trade(B, "3", at_ms=2_100, partition=1)
    driver.turn_clock(4_000)
    assert [w.prices() for w in driver.windows()] == [{B: "2"}, {B: "3"}]
    ledger = driver.ledger()
    assert (ledger.total.read, ledger.log) == (2, (2,))


def test_entries_in_avro_wait_for_their_registry(make_driver: MakeDriver) -> None:
    """None is refused while it is away; one whose schema it does not have is."""
    schema = AvroSchema(TRADE)
    with answering() as answers:
        answers.away_times = 3
        answers.status, answers.body = 200, {"schema": TRADE}
        driver = make_driver(decoder="avro", schema_registry_url=answers.url)
        for at_ms in (100, 200):
            values = {**VALUES, "isin": A, "time": START_MS + at_ms}
            driver.payload(framed(3, schema.write(values)), at_ms=at_ms)
        driver.payload(b"\0\0", at_ms=300)
        driver.turn_clock(2_000)
        [window] = driver.windows()
    assert window.prices() == {A: "199500.5"}
    assert window.fields(A)["trades"] == 2
    assert driver.ledger().total.refused == {"not_decoded": 1}


def test_entries_of_any_form_are_read_through_a_decoder(
    make_driver: MakeDriver,
) -> None:
    """Latest, accounted for: the rules are those of JSON, the form is the user's."""
    driver = make_driver(decoder="plistlib:loads")

    def write(price: str, at_ms: int, **more: str) -> bytes:
        time = (START_MS + at_ms) * 1000
        fields = {"isin": A, "time": time, "seq": 1, "price": price, "size": "3"}
        return plistlib.dumps({**fields, **more}, fmt=plistlib.FMT_BINARY)

    driver.payload(write("70000", 100), at_ms=100)
    driver.payload(write("70100.50", 200, side="B"), at_ms=200)
    driver.payload(b"no list", at_ms=300)
    driver.payload(b"", at_ms=400)
    driver.payload(write("-1", 500), at_ms=500)
    driver.trade(A, "1", at_ms=600, partition=0)
    driver.turn_clock(2_000)
    [window] = driver.windows()
    assert window.prices() == {A: "70100.50"}
    assert (window.fields(A)["side"], window.fields(A)["trades"]) == ("B", 2)
    assert driver.ledger().total.refused == {
        "bad_price": 1,
        "empty": 1,
        "not_decoded": 2,
    }
    assert driver.ledger().problems() == []
    first = driver.dead_letters()[0]
    assert (first["trade"], first["appended"]) == ("no list", str(START_MS + 300))


def test_series_are_published_beside_their_instrument(make_driver: MakeDriver) -> None:
    """One venue, one session; a trade taken back leaves each that had it."""
    driver = make_driver(series="KRX,NXT,regular", sessions="XKRX")
    driver.trade(A, "1", at_ms=100, seq=1, venue="KRX")
    driver.trade(A, "2", at_ms=200, seq=2, venue="NXT", session="after")
    driver.trade(A, "3", at_ms=300, seq=3, venue="KRX", size="4")
    driver.turn_clock(2_000)
    driver.cancel(A, 3, at_ms=2_500)
    driver.turn_clock(4_000)
    first, second = (window.prices() for window in driver.windows())
    krx, nxt, regular = (f"{A}@{name}" for name in ("KRX", "NXT", "regular"))
    assert first == {A: "3", krx: "3", nxt: "2", regular: "3"}
    assert second == {A: "2", krx: "1", regular: "1"}
    fields = driver.windows()[0].fields(krx)
    assert (fields["isin"], fields["session"]) == (krx, "regular")
    assert (fields["trades"], fields["volume"]) == (2, "5")
    books = driver.ledger()
    assert books.problems() == []
    assert (books.total.read, books.total.extra) == (4, 5)
    assert (books.total.taken_back, books.total.unknown_target) == (1, 0)


def test_a_restarted_job_goes_on_where_it_stopped(driver: ThrottleDriver) -> None:
    """Exactly once: no window is missing or doubled, the books go on."""
    driver.trade(A, "1", at_ms=100)
    driver.turn_clock(2_000)
    driver.restart_job()
    driver.trade(A, "2", at_ms=2_100)
    driver.payload(b"junk", at_ms=2_200)
    driver.turn_clock(4_000)
    assert [w.offset for w in driver.windows()] == [1, 2]
    ledger = driver.ledger()
    assert (ledger.total.read, ledger.total.published) == (3, 2)
    assert ledger.total.refused == {"not_json": 1}
    assert ledger.log == tuple(b.read for b in ledger.partitions)


def test_a_clock_set_back_stops_windows_and_loses_nothing(
    driver: ThrottleDriver,
) -> None:
    """Never lost: windows wait until the clock is where it was."""
    driver.trade(A, "1", at_ms=100)
    driver.turn_clock(4_000)
    driver.turn_clock(-3_600_000)
    driver.trade(A, "2", at_ms=4_100)
    driver.turn_clock(6_000)
    assert [w.prices() for w in driver.windows()] == [{A: "1"}, {}, {A: "2"}]


def test_a_moment_before_the_partitions_last_is_refused(
    make_driver: MakeDriver,
) -> None:
    """Bad input gets one clear error."""
    driver = make_driver(partitions=1)
    driver.trade(A, "1", at_ms=100)
    with pytest.raises(ValueError, match="at_ms 99: partition 0 has a later entry"):
        driver.trade(B, "1", at_ms=99)


def test_a_driver_brings_its_own_server() -> None:
    """The example of the documentation: ten lines, nothing to start before."""
    with ThrottleDriver() as driver:
        driver.trade(A, "70000", at_ms=100)
        driver.trade(A, "70100", at_ms=1_900)
        driver.turn_clock(2_000)
        [window] = driver.windows()
        assert window.prices() == {A: "70100"}
        assert driver.ledger().total.superseded == 1


@pytest.mark.parametrize("point", CRASH_POINTS)
def test_a_job_that_dies_in_a_batch_misses_and_doubles_nothing(
    redis_url: str, point: CrashPoint
) -> None:
    """Exactly once, accounted: as if nothing had happened, wherever it died."""
    check_crash(ThrottleDriver, redis_url, point)


@pytest.mark.spark
@pytest.mark.parametrize("point", CRASH_POINTS_IN_SPARK)
def test_a_query_that_dies_in_a_batch_misses_and_doubles_nothing(
    redis_url: str, spark: SparkSession, point: CrashPoint
) -> None:
    """Exactly once, accounted: the same for Spark's next query."""
    check_crash(partial(ThrottleDriver, spark=spark), redis_url, point)


def test_a_crash_that_never_came_is_an_error(driver: ThrottleDriver) -> None:
    """A scenario that tests nothing does not pass."""
    with pytest.raises(ValueError, match="crash_at after_publish: no batch came"):
        driver.turn_clock(1_999, crash_at="after_publish")


def check_crash(make: MakeDriver, redis_url: str, point: CrashPoint) -> None:
    """Play the same with a crash and without; expect the same windows and books."""
    with make(redis_url=redis_url, namespace="calm") as driver:
        undisturbed = play(driver, None)
    with make(redis_url=redis_url, namespace="crashed") as driver:
        assert play(driver, point) == undisturbed
    windows, updates, total = undisturbed
    assert [(end_ms, offset) for end_ms, offset, _ in windows] == [
        (end_ms, number) for number, end_ms in enumerate(range(2_000, 10_001, 2_000), 1)
    ]
    assert sum(count for _, count in updates) == len(windows)
    assert total["read"] == 7


def play(driver: ThrottleDriver, crash_at: CrashPoint | None) -> tuple[Any, Any, Any]:
    """Play a few windows with all kinds of trades; the job dies in the third."""
    driver.trade(A, "1", at_ms=100)
    driver.trade(B, "2", at_ms=200)
    driver.turn_clock(2_000)
    driver.turn_clock(4_000)
    driver.trade(A, "3", at_ms=4_100)
    driver.trade(A, "4", at_ms=4_200)
    driver.trade(B, "5", at_ms=4_300, time_ms=100)
    driver.payload(b"no trade", at_ms=4_400)
    driver.turn_clock(6_000, crash_at=crash_at)
    driver.turn_clock(8_000)
    driver.trade(B, "6", at_ms=8_100)
    driver.turn_clock(10_000)
    windows = [(w.end_ms, w.offset, w.prices()) for w in driver.windows()]
    updates = [(u.offset, u.windows) for u in driver.updates()]
    ledger = driver.ledger()
    assert ledger.problems() == []
    return windows, updates, ledger.total.to_object()


def listed(sector: str) -> list[InstrumentEntry]:
    """Make a table of two instruments."""
    return [
        InstrumentEntry(A, market="KOSPI", sector=sector, prev_close="100"),
        InstrumentEntry(B, market="KOSDAQ", sector="Chips", prev_close="50"),
    ]


def test_instruments_of_another_type_are_refused_in_a_sentence() -> None:
    """Before anything is written; it says which type they must have."""
    instruments: Any = [{"isin": A, "market": "KOSPI"}]
    with pytest.raises(
        TypeError, match=r"^instruments: .* must be an .*\.InstrumentEntry$"
    ):
        ThrottleDriver(instruments=instruments)


def test_windows_say_how_markets_and_sectors_went(make_driver: MakeDriver) -> None:
    """The same by the rules and by Spark's broadcast join, in a backlog, too."""
    driver = make_driver(instruments=listed("Chips"))
    for start_ms in (0, 2_000, 4_000):
        driver.trade(A, "101", at_ms=start_ms + 1, size="2")
        driver.trade(A, "99.5", at_ms=start_ms + 2, size="0.123456789012")
        driver.trade(B, "50", at_ms=start_ms + 3)
        driver.trade(C, "7", at_ms=start_ms + 4, size="12345678901")
    driver.turn_clock(6_000)
    assert len(driver.windows()) == 3
    for window in driver.windows():
        assert {key: g["instruments"] for key, g in window.groups.items()} == {
            "group:market:": "1",
            "group:market:KOSDAQ": "1",
            "group:market:KOSPI": "1",
            "group:sector:": "1",
            "group:sector:Chips": "2",
        }
        chips = window.groups["group:sector:Chips"]
        assert (chips["declining"], chips["unchanged"]) == ("1", "1")
        assert (chips["volume"], chips["value"]) == (
            "3.123456789012",
            "264.283950506694",
        )
        assert chips["mean_change_pct"] == "-0.2500"
        assert window.groups["group:market:"]["value"] == "86419752307"
    assert driver.ledger().total.unknown_instrument == 3
    assert driver.ledger().off_by == 0


def test_a_sector_that_is_renamed_is_another_group_soon(
    make_driver: MakeDriver,
) -> None:
    """A window that is open may be joined already; the one behind it is not."""
    driver = make_driver(instruments=listed("Chips"))
    driver.trade(A, "101", at_ms=1)
    driver.turn_clock(2_000)
    version = driver.load_instruments(listed("Semiconductors"))
    driver.turn_clock(4_000)
    driver.trade(A, "102", at_ms=4_001)
    driver.turn_clock(6_000)
    first, _, last = driver.windows()
    assert "group:sector:Chips" in first.groups
    assert set(last.groups) == {"group:market:KOSPI", "group:sector:Semiconductors"}
    assert last.instruments_version == version
