"""``TradeProducer`` on a real server: what is sent is in the log, all of it counted."""

import asyncio
import json
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import redis
from click.testing import Result
from typer.testing import CliRunner

from cli.command_line import app
from ingest.feed.receipt import read_receipt
from ingest.sources.simulator import Simulator
from ingest.trade import Trade
from ingest.tradelog.redis_log_reader import open_log
from tests.clients.own_valkey import OwnValkey
from tests.clients.patience import soon
from tests.conftest import PATIENCE
from tests.logged import logged_in_redis
from tests.paths import ROOT
from tests.ports import free_port
from tests.redis_users import documented_users, url_of
from throttle.testing.driver import ThrottleDriver
from tickthrottle_client import (
    InvalidTrade,
    LogAway,
    LogUnusable,
    NotAppended,
    TradeProducer,
    key_of,
)
from tickthrottle_client.log_v1 import partition_of

pytestmark = [pytest.mark.redis, pytest.mark.timeout(120)]

ISIN = "KR7005930003"
NOW_US = 1_773_964_804_000_000
PAGE = (ROOT / "docs" / "producing.md").read_text("utf-8")
CLIENT_PAGE = (ROOT / "clients" / "python" / "README.md").read_text("utf-8")


def make_fields(number: int, **changed: Any) -> dict[str, Any]:
    whole = {"isin": ISIN, "time": NOW_US, "seq": number, "price": "1.50", "size": 3}
    return {**whole, **changed}


def payloads(client: redis.Redis) -> list[bytes]:
    """Return every payload of the log, partition after partition."""
    return [entry.payload for entry in logged_in_redis(client)]


def seqs(client: redis.Redis) -> list[int]:
    """Return every trade's number, partition after partition."""
    return [Trade.from_wire(payload).seq for payload in payloads(client)]


@pytest.fixture
def own(tmp_path: Path) -> Iterator[OwnValkey]:
    with OwnValkey(tmp_path) as server:
        yield server


@asynccontextmanager
async def frozen(server: OwnValkey) -> AsyncIterator[None]:
    """Have a server stand still for as long as the block lasts."""
    server.freeze()
    try:
        yield
    finally:
        server.thaw()


async def test_what_was_sent_is_in_the_log_in_order(
    redis_url: str, client: redis.Redis, tmp_path: Path
) -> None:
    """A market's trades: an instrument's in its partition, in order, byte for byte."""
    events = list(Simulator(rate=20_000, seconds=0.5, repeats=0).events(NOW_US))
    path = tmp_path / "receipt.json"
    async with TradeProducer(redis_url, receipt=path) as producer:
        for event in events:
            await producer.send(json.loads(event.payload))
        assert not read_receipt(path.read_bytes()).ended
        await producer.flush()
        assert producer.acknowledged == len(events)
        assert producer.waiting_bytes == 0
    expected = defaultdict(list)
    for event in events:
        expected[partition_of(event.key, 4)].append(event.payload)
    found = defaultdict(list)
    for entry in logged_in_redis(client):
        found[entry.partition].append(entry.payload)
    assert found == expected
    assert (producer.in_doubt, producer.refused) == (0, {})
    receipt = read_receipt(path.read_bytes())
    assert receipt.ended
    assert receipt.log_id == producer.log.log_id
    assert receipt.partitions == tuple(producer.tallies)
    entries = logged_in_redis(client)
    for partition, tally in enumerate(receipt.partitions):
        positions = [e.position for e in entries if e.partition == partition]
        assert tally.acknowledged == len(positions)
        assert (tally.first, tally.last) == (min(positions), max(positions))


async def test_a_trade_that_breaks_a_rule_is_told_and_not_taken(
    redis_url: str, client: redis.Redis
) -> None:
    """One error with field, value and rule; the next trade is taken."""
    cases = (
        ({"isin": "KR7005930004"}, "isin 'KR7005930004': check digit is 3"),
        ({"isin": "005930"}, "isin '005930': must be 2 capitals"),
        ({"isin": None}, "isin None: is required"),
        ({"price": 1.5}, "price 1.5: is a float, which may have lost digits"),
        ({"size": 1.0}, "size 1.0: is a float"),
        ({"price": "1e3"}, "price '1e3': must be a plain decimal"),
        ({"price": Decimal("NaN")}, "price 'NaN': must be a plain decimal"),
        ({"price": Decimal("1e999999")}, "price '1E+999999': must be a plain"),
        ({"size": 0}, "size 0: must be above zero"),
        ({"size": -1}, "size -1: must be a plain decimal"),
        ({"size": True}, "size True: must be a plain decimal"),
        ({"time": NOW_US // 1_000}, "time 1773964804000: must be microseconds"),
        ({"time": "2026-03-20T09:00:04"}, "time '2026-03-20T09:00:04': needs its"),
        ({"time": datetime(2026, 3, 20)}, "time '2026-03-20 00:00:00': needs"),  # noqa: DTZ001
        ({"time": 1.7e15}, "time 1700000000000000.0: must be a whole number"),
        ({"seq": -1}, "seq -1: must be a whole number"),
        ({"trades": 1}, "trades 1: is a name that rows have themselves"),
        ({"side": {"a": 1}}, "side {'a': 1}: must be UTF-8 text"),
        ({"side": Decimal("Infinity")}, "side Decimal('Infinity'): must be"),
        ({"note": "\ud800"}, "note '\\ud800': must be UTF-8 text"),
        ({"note": "x" * 20_000}, "trade 20091: over 16384 bytes"),
    )
    async with TradeProducer(redis_url) as producer:
        for changed, said in cases:
            with pytest.raises(InvalidTrade) as caught:
                await producer.send(make_fields(1, **changed))
            assert str(caught.value).startswith(said)
            await producer.send(make_fields(2))
    assert seqs(client) == [2] * len(cases)


async def test_times_and_numbers_are_taken_in_every_exact_form(
    redis_url: str, client: redis.Redis
) -> None:
    """Times as text and as datetimes, decimals as Decimal, missing numbers counted."""
    seoul = timezone(timedelta(hours=9))
    moment = datetime(2026, 3, 20, 9, 0, 4, 123_456, tzinfo=seoul)
    time_us = 1_773_964_804_123_456
    async with TradeProducer(redis_url) as producer:
        for time_ in (
            moment,
            moment.isoformat(),
            moment.astimezone(UTC),
            1773964804123456,
        ):
            fields = make_fields(
                0, time=time_, price=Decimal("6E-8"), size=Decimal("1E3")
            )
            del fields["seq"]
            await producer.send(fields)
    found = [Trade.from_wire(payload) for payload in payloads(client)]
    assert {trade.time_us for trade in found} == {time_us}
    assert {(t.price, t.size) for t in found} == {("0.00000006", "1000")}
    assert [b.seq - a.seq for a, b in pairwise(found)] == [1, 1, 1]
    assert abs(found[0].seq - time.time_ns() // 1_000) < 60_000_000


async def test_while_the_server_stands_still_send_waits_and_memory_is_bounded(
    own: OwnValkey, tmp_path: Path
) -> None:
    """Nothing is dropped, nothing is in disorder, and only so much is held."""
    sent = 0
    most = 0

    async def send(producer: TradeProducer) -> None:
        nonlocal sent, most
        for number in range(6_000):
            await producer.send(make_fields(number))
            sent = number + 1
            most = max(most, producer.waiting_bytes)

    async with TradeProducer(
        own.url, buffer_bytes=500_000, leave_within_s=60
    ) as producer:
        async with frozen(own):
            sending = asyncio.create_task(send(producer))
            await soon(lambda: producer.away is not None)
            held = sent
            assert 500_000 // 400 < held < 500_000 // 200
            assert not sending.done()
        await sending
        await producer.flush()
        assert producer.away is None
    assert most <= 500_000
    assert producer.acknowledged == 6_000
    with own.client() as client:
        found = seqs(client)
    # What had no answer was sent again, and is counted.
    assert 6_000 <= len(found) <= 6_000 + producer.in_doubt
    assert list(dict.fromkeys(found)) == list(range(6_000))


async def test_a_server_killed_and_started_again_loses_nothing(
    own: OwnValkey, tmp_path: Path
) -> None:
    """Across three kills every trade is there; what is there twice was in doubt."""
    path = tmp_path / "receipt.json"

    async def cut(producer: TradeProducer) -> None:
        for _ in range(3):
            before = producer.acknowledged
            await soon(lambda: producer.acknowledged > before + 2_000)  # noqa: B023
            await asyncio.to_thread(own.kill)
            await soon(lambda: producer.away is not None)
            await asyncio.to_thread(own.start)
            await soon(lambda: producer.away is None)

    async with TradeProducer(own.url, receipt=path, leave_within_s=60) as producer:
        cutting = asyncio.create_task(cut(producer))
        number = 0
        while not cutting.done():
            await producer.send(make_fields(number))
            number += 1
            if number % 100 == 0:
                await asyncio.sleep(0.002)
        await cutting
    with own.client() as client:
        found = Counter(seqs(client))
    assert producer.acknowledged == number
    assert sorted(found) == list(range(number))
    assert found.total() - number <= producer.in_doubt <= 3 * 1_000
    receipt = read_receipt(path.read_bytes())
    assert sum(tally.in_doubt for tally in receipt.partitions) == producer.in_doubt


async def test_a_log_that_was_emptied_gets_nothing(
    redis_url: str, client: redis.Redis
) -> None:
    """Whoever sends, flushes or ends the block is told; nothing is there."""

    async def produce() -> None:
        async with TradeProducer(redis_url) as producer:
            await producer.send(make_fields(1))
            await producer.flush()
            client.flushall()
            await producer.send(make_fields(2))
            for tried in (producer.flush(), producer.send(make_fields(3))):
                with pytest.raises(LogUnusable, match="another one now"):
                    await tried

    with pytest.raises(LogUnusable, match=r"it was \w+, it is gone;") as caught:
        await produce()
    assert caught.value.__notes__ == [
        "1 trades were not sent, 0 were sent and not acknowledged: "
        "the producer has ended"
    ]
    assert client.keys() == []


async def test_a_log_that_was_made_anew_gets_nothing(
    redis_url: str, client: redis.Redis
) -> None:
    """Another log under the same name is another log."""

    async def produce() -> None:
        async with TradeProducer(redis_url) as producer:
            client.flushall()
            open_log(client, "tt", 4)
            await producer.send(make_fields(3))

    with pytest.raises(LogUnusable, match=r"another one now: it was \w+, it is \w+;"):
        await produce()
    assert payloads(client) == []
    with pytest.raises(RuntimeError, match="within the producer's block"):
        await TradeProducer(redis_url).send(make_fields(4))


async def test_the_log_is_the_one_that_feeds_use(
    redis_url: str, client: redis.Redis
) -> None:
    """An existing log keeps its partitions; a new one is as a feed makes it."""
    async with TradeProducer(redis_url, namespace="one", partitions=2) as producer:
        assert open_log(client, "one", 7) == producer.log
        assert producer.log.partitions == len(producer.tallies) == 2
        fields: Any = client.hgetall("one:log")
        assert fields.keys() == {b"id", b"partitions", b"created_ms"}
    feed = open_log(client, "other", 3)
    async with TradeProducer(redis_url, namespace="other") as producer:
        assert producer.log == feed


async def test_two_producers_at_once(redis_url: str, client: redis.Redis) -> None:
    """Both write, each counts its own, and each one's order holds."""

    async def produce(start: int) -> TradeProducer:
        async with TradeProducer(redis_url, partitions=1) as producer:
            for number in range(start, start + 3_000):
                await producer.send(make_fields(number))
                if number % 50 == 0:
                    await asyncio.sleep(0)
        return producer

    both = await asyncio.gather(produce(0), produce(10_000))
    assert [producer.acknowledged for producer in both] == [3_000, 3_000]
    found = seqs(client)
    assert sorted(found) == [*range(3_000), *range(10_000, 13_000)]
    for start in (0, 10_000):
        own = [n for n in found if start <= n < start + 3_000]
        assert own == sorted(own)


async def test_tasks_that_wait_for_room_are_served_in_turn(own: OwnValkey) -> None:
    """Back-pressure keeps the order in which trades were sent."""
    async with TradeProducer(
        own.url, buffer_bytes=1_000, leave_within_s=60
    ) as producer:
        async with frozen(own):
            tasks = []
            for number in range(40):
                tasks.append(asyncio.create_task(producer.send(make_fields(number))))
                await asyncio.sleep(0)
            await soon(lambda: producer.away is not None)
            assert sum(task.done() for task in tasks) <= 4
            # One that is cancelled has taken nothing, and holds up nobody.
            tasks[20].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert tasks[20].cancelled()
    with own.client() as client:
        found = list(dict.fromkeys(seqs(client)))
    assert found == [number for number in range(40) if number != 20]


async def test_what_is_left_when_the_time_is_over_is_told(
    own: OwnValkey, tmp_path: Path
) -> None:
    """In the exception and in the receipt: what was not sent, what is in doubt."""
    path = tmp_path / "receipt.json"
    began_s = time.monotonic()
    producer = TradeProducer(own.url, receipt=path, leave_within_s=0.5)

    async def produce() -> None:
        async with producer:
            await producer.send(make_fields(0))
            await producer.flush()
            own.freeze()
            for number in range(1, 2_501):
                await producer.send(make_fields(number))

    with pytest.raises(NotAppended) as caught:
        await produce()
    assert time.monotonic() - began_s < 3 * PATIENCE
    left = caught.value
    assert left.unsent + left.in_doubt == 2_500
    assert 0 < left.in_doubt == producer.in_doubt <= 1_000
    assert "not within 0.5 s" in str(left)
    assert producer.acknowledged == 1
    receipt = read_receipt(path.read_bytes())
    assert receipt.ended
    assert receipt.refused == {"unsent": left.unsent} == producer.refused
    own.thaw()
    with own.client() as client:
        assert len(seqs(client)) <= 1 + left.in_doubt


async def test_an_exception_in_the_block_comes_out_of_it(
    redis_url: str, client: redis.Redis
) -> None:
    """What was sent before is appended all the same."""

    async def produce() -> None:
        async with TradeProducer(redis_url) as producer:
            for number in range(500):
                await producer.send(make_fields(number))
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as caught:
        await produce()
    assert seqs(client) == list(range(500))
    assert not hasattr(caught.value, "__notes__")


async def test_a_cancelled_block_appends_what_it_was_given(
    redis_url: str, client: redis.Redis
) -> None:
    """As on Ctrl-C: the first cancellation is waited for, and stays one."""

    async def produce() -> None:
        async with TradeProducer(redis_url) as producer:
            for number in range(500):
                await producer.send(make_fields(number))
            await asyncio.sleep(600)

    task = asyncio.create_task(produce())
    await soon(lambda: len(payloads(client)) > 0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seqs(client) == list(range(500))


async def test_a_second_cancellation_ends_the_waiting(
    own: OwnValkey, tmp_path: Path
) -> None:
    """What is left is in the receipt."""
    path = tmp_path / "receipt.json"
    entered = asyncio.Event()

    async def produce() -> None:
        async with TradeProducer(own.url, receipt=path, leave_within_s=600) as producer:
            own.freeze()
            for number in range(1_500):
                await producer.send(make_fields(number))
            entered.set()
            await asyncio.sleep(600)

    task = asyncio.create_task(produce())
    await entered.wait()
    for _ in range(2):
        task.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    receipt = read_receipt(path.read_bytes())
    in_doubt = sum(tally.in_doubt for tally in receipt.partitions)
    assert receipt.ended
    assert receipt.refused["unsent"] + in_doubt == 1_500


def reconcile(path: Path) -> Result:
    return CliRunner().invoke(app, ["reconcile", "--acknowledged", str(path)])


async def test_a_receipt_is_what_reconcile_accepts(
    redis_url: str, client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command that compares finds every trade, and one that was taken away."""
    path = tmp_path / "receipt.json"
    monkeypatch.setenv("REDIS_URL", redis_url)
    start_ms = time.time_ns() // 1_000_000 // 2_000 * 2_000
    with ThrottleDriver(redis_url=redis_url, start_ms=start_ms) as job:
        async with TradeProducer(redis_url, receipt=path) as producer:
            for event in Simulator(rate=5_000, seconds=0.2, repeats=0).events(NOW_US):
                await producer.send(json.loads(event.payload))
        now_ms = time.time_ns() // 1_000_000
        await asyncio.to_thread(job.turn_clock, now_ms + 2_000 - start_ms)
        done = reconcile(path)
        assert "every trade is accounted for" in done.output, done.output
        assert done.exit_code == 0
        assert producer.acknowledged > 500
    counts = [tally.acknowledged for tally in producer.tallies]
    first = counts.index(max(counts))
    found: Any = client.xrevrange(f"tt:log:{first}", count=1)
    client.xdel(f"tt:log:{first}", found[0][0])
    assert reconcile(path).exit_code == 1


async def test_a_receipt_is_renewed_while_the_producer_runs(
    redis_url: str, tmp_path: Path
) -> None:
    """Whoever looks meanwhile finds a whole one that is a few seconds old."""
    path = tmp_path / "receipt.json"
    async with TradeProducer(redis_url, receipt=path) as producer:
        await producer.send(make_fields(1))

        def told() -> int:
            receipt = read_receipt(path.read_bytes())
            assert not receipt.ended
            return sum(tally.acknowledged for tally in receipt.partitions)

        await soon(lambda: told() == 1)
    with pytest.raises(OSError, match=r"missing/r\.json"):
        async with TradeProducer(redis_url, receipt=tmp_path / "missing" / "r.json"):
            pass


async def test_the_cap_holds(
    redis_url: str, client: redis.Redis, tmp_path: Path
) -> None:
    """A log that nobody reads keeps its newest trades; the dropped ones are counted."""
    path = tmp_path / "receipt.json"
    async with TradeProducer(
        redis_url, partitions=1, cap=2_000, receipt=path
    ) as producer:
        for number in range(20_000):
            await producer.send(make_fields(number))
    found = seqs(client)
    assert len(found) < 2_000 + 5_000 + 1_000
    assert found == list(range(20_000 - len(found), 20_000))
    assert producer.dropped_at_cap == 20_000 - len(found)
    assert read_receipt(path.read_bytes()).dropped_at_cap == producer.dropped_at_cap


async def test_a_server_that_is_full_is_waited_for(own: OwnValkey) -> None:
    """It answers, so nothing is in doubt; once it has room, everything is there."""
    with own.client() as client:
        async with TradeProducer(own.url, leave_within_s=60) as producer:
            client.config_set("maxmemory", "1")
            for number in range(100):
                await producer.send(make_fields(number))
            await soon(lambda: producer.away is not None)
            assert "used memory" in str(producer.away)
            client.config_set("maxmemory", "0")
            await producer.flush()
        assert seqs(client) == list(range(100))
    assert producer.in_doubt == 0


async def test_a_server_that_is_not_there_is_one_clear_sentence() -> None:
    """The address is named, never its password."""
    address = f"127.0.0.1:{free_port()}"
    with pytest.raises(
        LogAway, match=f"no Redis or Valkey .* at redis://{address}"
    ) as caught:
        async with TradeProducer(f"redis://:secret@{address}/0"):
            pass
    assert "secret" not in str(caught.value)


async def test_a_server_that_refuses_is_one_clear_sentence(
    redis_url: str, client: redis.Redis
) -> None:
    """A wrong password, and a key in the way."""
    url = redis_url.replace("redis://", "redis://nobody:secret@")
    with pytest.raises(LogUnusable, match="refuses: ") as caught:
        async with TradeProducer(url):
            pass
    assert "secret" not in str(caught.value)
    client.set("tt:log", "in the way")
    with pytest.raises(LogUnusable, match=r"refuses: .*WRONGTYPE"):
        async with TradeProducer(redis_url):
            pass


async def test_the_documented_user_has_the_rights_it_takes(
    redis_url: str, client: redis.Redis
) -> None:
    """With the line of the documents a producer runs, at the cap too."""
    with documented_users(client):
        address = url_of("tt-producer", redis_url)
        async with TradeProducer(address, partitions=1, cap=1_000) as producer:
            for number in range(6_000):
                await producer.send(make_fields(number))
    assert producer.acknowledged == 6_000


def test_an_address_or_option_that_cannot_be_is_told() -> None:
    """At once, with what it has to be like."""
    for address, options, said in (
        ("http://x", {}, "address: must begin with redis://"),
        ("localhost:6379", {}, "address: must begin with"),
        ("kafka://host:9092", {}, "address: must be like kafka://"),
        ("kafka:///topic", {}, "must be like kafka://host:9092,host2:9092/topic"),
        (
            "kafka://h:1/t",
            {"kafka_options": {"retries": "0"}},
            "kafka_options: retries may not be set: a trade is sent until",
        ),
        ("redis://h", {"namespace": "a b"}, "namespace 'a b': must be like"),
        ("redis://h", {"partitions": 0}, "partitions 0: must be at least 1"),
        ("redis://h", {"partitions": 65}, "partitions 65: must be at most 64"),
        ("redis://h", {"cap": 10}, "cap 10: must be at least 1000"),
        ("redis://h", {"buffer_bytes": 0}, "buffer_bytes 0: must be at least 1"),
        ("redis://h", {"venue": "X Y"}, "venue 'X Y': must be a name"),
    ):
        with pytest.raises(LogUnusable, match=re.escape(said)):
            TradeProducer(address, **options)


@pytest.mark.parametrize(
    ("library", "address", "extra"),
    [
        ("redis", "redis://127.0.0.1:1", "redis"),
        ("confluent_kafka", "kafka://127.0.0.1:1/t", "kafka"),
    ],
)
def test_a_missing_extra_is_one_clear_sentence(
    library: str, address: str, extra: str
) -> None:
    """Who installed the client alone is told what else to install."""
    program = (
        "import asyncio, sys\n"
        f"sys.modules[{library!r}] = None\n"
        "from tickthrottle_client import TradeProducer\n"
        "async def run():\n"
        f"    async with TradeProducer({address!r}): pass\n"
        "asyncio.run(run())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    last = done.stderr.strip().splitlines()[-1]
    package = library.replace("_", "-")
    assert last == (
        f"tickthrottle_client.log_v1.LogUnusable: an address {extra}:// needs the "
        f"package {package}, which is not installed: "
        f"pip install 'tickthrottle-client[{extra}]'"
    )


def test_nothing_is_loaded_before_it_is_needed() -> None:
    """Neither a library of a log, nor what only followers of the stream need."""
    program = (
        "import sys\n"
        "from tickthrottle_client import TradeProducer, InvalidTrade\n"
        "print({m.partition('.')[0] for m in sys.modules}"
        " & {'redis', 'confluent_kafka', 'websockets', 'orjson', 'pydantic'})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


@pytest.mark.parametrize("page", [PAGE, CLIENT_PAGE], ids=["producing", "readme"])
def test_the_example_of_a_page_runs(
    page: str, redis_url: str, client: redis.Redis, tmp_path: Path
) -> None:
    """It can be copied: a trade is in the log, and a receipt in the folder."""
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    [example] = [block for block in blocks if "TradeProducer" in block]
    assert "redis://127.0.0.1:6379" in example
    done = subprocess.run(
        [sys.executable, "-c", example.replace("redis://127.0.0.1:6379", redis_url)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1\n"
    assert len(payloads(client)) == 1
    with suppress(FileNotFoundError):
        assert read_receipt((tmp_path / "morning.json").read_bytes()).ended


async def test_a_producer_with_a_venue_takes_symbols(
    redis_url: str, client: redis.Redis
) -> None:
    """Beside ISINs; without a venue a symbol is a further field as any other."""
    fields = make_fields(1)
    del fields["isin"]
    async with TradeProducer(redis_url, partitions=1, venue="XMKT=QM") as producer:
        await producer.send({**fields, "symbol": "BTC-PERP"})
        await producer.send(make_fields(2))
        with pytest.raises(InvalidTrade, match="symbol 5930: must be text"):
            await producer.send({**fields, "symbol": 5930})
    sent = [Trade.from_wire(payload) for payload in payloads(client)]
    assert [trade.isin for trade in sent] == [key_of("QM", "BTC-PERP"), ISIN]
    assert sent[0].extra == {"symbol": "BTC-PERP", "venue": "XMKT"}
    async with TradeProducer(redis_url, partitions=1) as producer:
        with pytest.raises(InvalidTrade, match="isin None: is required"):
            await producer.send({**fields, "symbol": "BTC-PERP"})
