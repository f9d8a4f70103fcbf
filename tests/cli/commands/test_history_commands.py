"""The commands that look and change nothing, over a stream on a real server."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
import redis

from cli.local.pipelines import leave_note
from tests.cli.running import objects, run
from tests.ports import free_port
from tests.quick_java import QUICK_JAVA
from throttle.testing.driver import START_MS, ThrottleDriver

pytestmark = pytest.mark.redis
W = 2_000
A, B = "KR7005930003", "KR7000660001"
NONE = {"stale": "0", "not_last": "0"}
ESCAPE = b'{"isin":"\x1b[31m\xff"}'


@pytest.fixture(autouse=True)
def _server(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", redis_url)


@pytest.fixture
def driver(redis_url: str) -> Iterator[ThrottleDriver]:
    """A job that has published four windows; the third is quiet."""
    with ThrottleDriver(redis_url=redis_url, partitions=2) as started:
        for n in (0, 1, 3):
            started.trade(A, f"{n + 1}.50", at_ms=n * W + 10, partition=1, side="B")
            started.trade(A, "0.10", at_ms=n * W + 20, time_ms=0, partition=1)
            started.payload(ESCAPE, at_ms=n * W + 30)
            started.turn_clock((n + 1) * W)
        started.trade(B, "7", at_ms=3 * W + 60, partition=0)
        yield started


def test_a_ledger_that_balances_says_so(driver: ThrottleDriver) -> None:
    """Totals and partitions, since when and up to which window."""
    result = run("ledger")
    assert result.exit_code == 0
    first, head, *lines, volume, value, verdict = result.stdout.splitlines()
    assert "from 2026-03-20T00:00:00.000Z up to the window 2026-03-20T00:00:08" in first
    assert "4 windows in 3 batches" in first
    assert head.split() == [
        *("partition", "read", "published", "superseded", "stale", "not_json", "log")
    ]
    assert [line.split() for line in lines] == [
        ["0", "3", "0", "0", "0", "3", "3"],
        ["1", "6", "3", "3", "0", "0", "6"],
        ["total", "9", "3", "3", "0", "3", "9"],
    ]
    assert volume == "volume: 6 read = 3 published + 3 superseded + 0 stale"
    assert value == "value: 8.8 read = 8.5 published + 0.3 superseded + 0 stale"
    assert verdict == "balanced"


def test_what_is_taken_back_has_a_place_in_the_ledger(redis_url: str) -> None:
    """Where nothing names a trade it has none."""
    with ThrottleDriver(redis_url=redis_url, partitions=1) as driver:
        driver.trade(A, "9", at_ms=10, seq=1)
        driver.trade(A, "7", at_ms=20, seq=2)
        driver.turn_clock(W)
        driver.cancel(A, 2, at_ms=W)
        driver.cancel(A, 3, at_ms=W)
        driver.turn_clock(2 * W)
    _, head, _, total, *_ = run("ledger").stdout.splitlines()
    assert head.split()[5:] == [
        *("skipped:", "cancel", "taken", "back", "unknown", "target", "log")
    ]
    assert total.split()[1:] == ["4", "1", "1", "0", "2", "1", "1", "4"]


def test_a_ledger_as_json_has_the_same_figures(driver: ThrottleDriver) -> None:
    [ledger] = objects("ledger")
    assert ledger["total"] == {
        **{"read": 9, "published": 3, "superseded": 3, "stale": 0},
        **{"refused": {"not_json": 3}, "blanks": 0, "unkept": 0, "log": 9},
        **{"extra": 0, "skipped": {}, "unknown_instrument": 0, "not_last": 0},
        **{"taken_back": 0, "unknown_target": 0},
        "volume": {"read": "6", "published": "3", "superseded": "3", **NONE},
        "value": {"read": "8.8", "published": "8.5", "superseded": "0.3", **NONE},
    }
    assert [one["partition"] for one in ledger["partitions"]] == [0, 1]
    assert ledger["upto_ms"] == ledger["checked_ms"] == START_MS + 4 * W
    assert ledger["balanced"] is True
    assert "newest_batches" not in ledger


def test_a_ledger_that_does_not_balance_ends_with_1(
    client: redis.Redis, driver: ThrottleDriver
) -> None:
    """With a sentence for each partition that does not."""
    client.hincrby("tt:ledger:throttle", "1:read", 1)
    result = run("ledger")
    assert result.exit_code == 1
    assert "partition 1: 7 trades were read, 6 are accounted for" in result.stdout
    assert "balanced" not in result.stdout
    [ledger] = objects("ledger")
    assert ledger["balanced"] is False
    assert len(ledger["problems"]) == 2


def test_the_newest_batches_can_be_shown_with_the_ledger(
    driver: ThrottleDriver,
) -> None:
    [ledger] = objects("ledger", "--batches", "2")
    assert [batch["offset"] for batch in ledger["newest_batches"]] == [2, 4]
    assert ledger["newest_batches"][1]["windows"] == 2
    assert ledger["newest_batches"][1]["total"]["refused"] == {"not_json": 1}
    *_, line = run("ledger", "--batches", "1").stdout.splitlines()
    assert line.split()[:3] == ["4", "2026-03-20T00:00:08.000Z", "2"]


def test_a_ledger_that_is_not_there_yet_is_no_error() -> None:
    result = run("ledger", "--job", "night")
    assert result.exit_code == 0
    assert result.stdout == "no ledger yet: no job night has run on this stream\n"
    assert objects("ledger") == [{"job": "throttle", "ledger": None}]


def test_past_windows_are_shown_newest_last(driver: ThrottleDriver) -> None:
    head, *lines = run("windows").stdout.splitlines()
    assert head.split()[:2] == ["offset", "window"]
    assert [line.split()[0] for line in lines] == ["1", "2", "3", "4"]
    assert [line.split()[2] for line in lines] == ["1", "1", "0", "1"]
    assert [w["offset"] for w in objects("windows", "--limit", "2")] == [3, 4]


def test_windows_of_a_range_are_shown(driver: ThrottleDriver) -> None:
    """By their ends; from a moment on the first ones, otherwise the newest."""
    for arguments, offsets in (
        (["--from", "2026-03-20T00:00:04"], [2, 3, 4]),
        (["--from", str(START_MS + 2 * W), "--limit", "1"], [2]),
        (["--to", "2026-03-20T09:00:06+09:00"], [1, 2, 3]),
        (["--to", str(START_MS + 3 * W), "--limit", "1"], [3]),
        (["--from", str(START_MS + 1), "--to", str(START_MS + W)], [1]),
        (["--isin", A, "--limit", "2"], [2, 4]),
        (["--isin", B], []),
    ):
        assert [w["offset"] for w in objects("windows", *arguments)] == offsets


def test_rows_keep_the_text_of_their_prices(driver: ThrottleDriver) -> None:
    """As text in a table and as JSON."""
    *_, window = objects("windows", "--rows")
    assert window["data"] == [
        {
            **{"isin": A, "time": (START_MS + 3 * W + 10) * 1000, "seq": 0},
            **{"price": "4.50", "size": 1, "side": "B", "trades": 2},
            **{"volume": 2, "value": "4.6", "high": "4.5", "low": "0.1"},
        }
    ]
    assert '"price":4.50,' in run("windows", "--isin", A).stdout
    assert "data" not in objects("windows")[0]


def test_trades_of_the_log_are_shown_with_their_positions(
    driver: ThrottleDriver,
) -> None:
    *_, refused, valid = objects("trades")
    assert valid["trade"]["isin"] == B
    assert valid["position"].startswith("0:")
    assert valid["append_ms"] == START_MS + 3 * W + 60
    assert refused["reason"] == "not_json"
    lines = run("trades", "--limit", "2").stdout.splitlines()
    assert "refused, not_json" in lines[1]
    assert lines[2].split()[0] == valid["position"]


def test_a_position_that_was_printed_can_be_asked_for(driver: ThrottleDriver) -> None:
    """From a trade on, from a moment on, of an instrument, of a partition."""
    every = objects("trades", "--limit", "50")
    assert len(every) == 10
    mine = objects("trades", "--isin", A)
    assert [t["trade"]["price"] for t in mine[::2]] == ["1.50", "2.50", "4.50"]
    assert objects("trades", "--from", mine[2]["position"]) == mine[2:]
    assert objects("trades", "--from", str(START_MS + 3 * W)) == every[6:]
    assert objects("trades", "--partition", "1") == mine
    first, second, *_ = objects("trades", "--from", mine[0]["position"], "--limit", "2")
    assert [first, second] == mine[:2]


def test_dead_letters_have_the_position_of_their_trade(
    driver: ThrottleDriver,
) -> None:
    letters = objects("trades", "--dead")
    assert len(letters) == 3
    refused = objects("trades", "--reason", "not_json")
    assert [one["position"] for one in refused] == [one["position"] for one in letters]
    assert refused == letters
    assert letters[0]["payload_base64"]
    assert objects("trades", "--dead", "--reason", "bad_isin") == []
    assert objects("trades", "--dead", "--isin", B) == []
    assert objects("trades", "--dead", "--partition", "1") == []
    assert objects("trades", "--dead", "--limit", "1") == letters[2:]
    assert objects("trades", "--dead", "--from", letters[1]["position"]) == letters[1:]


def test_a_letter_that_was_cut_says_so(driver: ThrottleDriver) -> None:
    """Its bytes are not all there: how many there were, and their digest."""
    payload = b"x" * 20_000
    driver.payload(payload, at_ms=5 * W, partition=1)
    driver.turn_clock(6 * W)
    *_, letter = objects("trades", "--dead")
    assert (letter["payload"], letter["bytes"]) == ("x" * 2_048, 20_000)
    assert letter["sha256"] == sha256(payload).hexdigest()
    assert "bytes" not in objects("trades", "--dead")[0]
    assert "20000" in run("trades", "--dead").stdout


def test_a_dead_letter_cannot_write_to_the_terminal(driver: ThrottleDriver) -> None:
    for arguments in (["trades", "--dead"], ["trades"]):
        shown = run(*arguments).stdout
        assert "\x1b" not in shown
        assert "\\x1b[31m" in shown


def test_windows_computed_again_are_right(driver: ThrottleDriver) -> None:
    """In words and as JSON, the whole past or a part of it."""
    result = run("rebuild")
    assert result.exit_code == 0
    assert "4 windows compared, 4 equal; 3 rows published, 0 missing" in result.stdout
    assert result.stdout.endswith("\nright\n")
    position = objects("trades", "--isin", A)[2]["position"]
    [report] = objects("rebuild", "--from", position)
    assert (report["compared"], report["right"]) == (3, True)
    [report] = objects("rebuild", "--from", position, "--to", position)
    assert report["compared"] == 1
    [report] = objects("rebuild", "--to", str(START_MS + W))
    assert report["compared"] == 1


def test_a_published_window_that_is_wrong_is_listed_and_ends_with_1(
    client: redis.Redis, driver: ThrottleDriver
) -> None:
    """With window, instrument, what was expected and what was published."""
    entries = client.xrange("tt:windows")
    client.delete("tt:windows")
    for found, fields in entries:
        snapshot = fields[b"snapshot"].replace(b'"price":2.50', b'"price":2.51')
        client.xadd("tt:windows", {"snapshot": snapshot}, id=found)
    result = run("rebuild")
    assert result.exit_code == 1
    *_, line, verdict = result.stdout.splitlines()
    assert line.split()[:4] == ["wrong", "2", "2026-03-20T00:00:04.000Z", A]
    assert '"price":2.50' in line
    assert '"price":2.51' in line
    assert verdict == "not right"
    [report] = objects("rebuild")
    [difference] = report["differences"]
    assert difference["window"] == START_MS + 2 * W
    assert '"price":2.51' in difference["published"]["body"]


def test_a_window_that_is_not_there_is_a_problem_and_a_row_too_many_is_shown(
    client: redis.Redis, driver: ThrottleDriver
) -> None:
    """A row that nobody computed has nothing to be compared with."""
    rows = client.xrange("tt:windows")[0][1][b"snapshot"].partition(b"\n")[2]
    entries = client.xrange("tt:windows")
    client.delete("tt:windows")
    for found, fields in entries:
        if found != b"2-0":
            quiet = b"\n" not in fields[b"snapshot"]
            more = b"\n" + rows if quiet else b""
            client.xadd(
                "tt:windows", {"snapshot": fields[b"snapshot"] + more}, id=found
            )
    lines = run("rebuild").stdout.splitlines()
    assert "offset 2: the window 1773964804000 is missing" in lines[1]
    assert lines[-2].split()[:5] == ["extra", "3", "2026-03-20T00:00:06.000Z", A, "-"]
    [report] = objects("rebuild")
    assert report["differences"][0]["expected"] is None


def test_a_log_that_did_not_count_is_shown_as_unknown(
    client: redis.Redis, driver: ThrottleDriver
) -> None:
    client.hdel("tt:ledger:throttle", "0:log", "1:log", "checked")
    result = run("ledger")
    assert result.exit_code == 0
    assert all(line.endswith(" ?") for line in result.stdout.splitlines()[2:5])
    assert objects("ledger")[0]["total"]["log"] is None


def test_a_bad_argument_is_one_sentence_and_ends_with_2(
    driver: ThrottleDriver,
) -> None:
    """The sentence names the option, its value and the rule."""
    for arguments, sentence in (
        (["windows", "--from", "noon"], "from noon: must be a time as in ISO 8601"),
        (["windows", "--to", "2026-02-30"], "to 2026-02-30: must be a time as in"),
        (["windows", "--limit", "0"], "limit 0: must be from 1 to 100000"),
        (["windows", "--isin", "KR7"], "isin 'KR7': must be 2 capitals, 9 capitals"),
        (["trades", "--partition", "2"], "partition 2: the log has the partitions 0"),
        (["trades", "--reason", "odd"], "reason odd: must be one of empty, too_large"),
        (["trades", "--from", "9:1"], "from 9:1: the log has the partitions 0 to 1"),
        (["rebuild", "--from", f"0:{2**62}"], f"from 0:{2**62}: in no batch that is"),
        (["rebuild", "--to", "late"], "to late: must be a time as in ISO 8601"),
        (["ledger", "--batches", "0"], "batches 0: must be from 1 to 100000"),
        (["ledger", "--job", "a b"], "job a b: String should match pattern"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2
        assert result.stderr.startswith(f"tickthrottle: {sentence}")
        assert len(result.stderr.splitlines()) == 1
        assert result.stdout == ""


def test_a_log_that_is_not_there_is_said_and_not_created(client: redis.Redis) -> None:
    """One sentence; the server is as empty as before."""
    for command in ("trades", "rebuild"):
        result = run(command)
        assert result.exit_code == 3
        assert result.stderr == "tickthrottle: there is no trade log yet under tt:log\n"
    assert run("windows").exit_code == 0
    assert client.dbsize() == 0


def test_a_job_that_has_not_published_cannot_be_rebuilt(
    client: redis.Redis, driver: ThrottleDriver
) -> None:
    """Those that have are named; a log that is another one is said to be."""
    result = run("rebuild", "--job", "night")
    assert result.exit_code == 3
    assert "job night: has never run on this stream (jobs that have: throttle)" in (
        result.stderr
    )
    client.hset("tt:log", "id", "another")
    assert "the log there is now is another" in run("rebuild").stderr
    client.hdel("tt:meta", "window_ms")
    client.hset("tt:meta", "log:throttle", "another")
    assert "nothing has been published yet" in run("rebuild").stderr


def test_what_nobody_would_have_written_is_one_sentence(client: redis.Redis) -> None:
    """A stream of somebody else's under our name."""
    client.xadd("tt:windows", {"snapshot": "?"}, id="1-0")
    client.hset("tt:ledger:throttle", "since", "{}")
    for command in ("windows", "ledger"):
        result = run(command)
        assert result.exit_code == 3
        assert result.stderr.startswith("tickthrottle: ")
        assert len(result.stderr.splitlines()) == 1


def test_a_running_pipeline_is_found_and_named(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On stderr, so that programs can read what is printed."""
    monkeypatch.delenv("REDIS_URL", raising=False)
    monkeypatch.setenv("TICKTHROTTLE_STATE_DIR", str(tmp_path))
    for port in (8000, 8123):
        folder = tmp_path / f"run-{port}"
        folder.mkdir()
        page = f"http://127.0.0.1:{port}/"
        leave_note(folder, os.getpid(), page, {"REDIS_URL": redis_url})
    result = run("ledger", "--json")
    assert result.exit_code == 2
    assert "2 pipelines run here, choose one: --redis-url" in result.stderr
    shutil.rmtree(folder)
    result = run("ledger", "--json")
    line = f"tickthrottle: with the pipeline of http://127.0.0.1:8000/ ({redis_url})"
    assert result.stderr.splitlines() == [line]
    assert json.loads(result.stdout) == {"job": "throttle", "ledger": None}


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    address = f"redis://:secret@127.0.0.1:{free_port()}"
    for command in ("ledger", "windows", "trades", "rebuild"):
        result = run(command, "--redis-url", address)
        assert result.exit_code == 3
        assert result.stderr.startswith(
            "tickthrottle: no Redis or Valkey server answers at redis://"
        )
        assert "secret" not in result.stderr


def test_the_pipeline_describes_itself_with_and_without_a_server(
    driver: ThrottleDriver,
) -> None:
    """The log's own partitions, or the configured ones, said to be that."""
    assert "partitions: 2, the log's own" in run("topology").stdout
    away = run("topology", "--redis-url", f"redis://127.0.0.1:{free_port()}")
    assert away.exit_code == 0
    assert "partitions: 4, as configured" in away.stdout
    assert run("topology", "--mermaid").stdout.startswith("flowchart LR\n")
    told = run("topology").stdout
    for title in ("Stages", "Analytics: bars", "Analytics: movers", "Archive: parquet"):
        assert f"\n{title}\n" in told


@pytest.mark.spark
def test_the_plan_of_a_batch_is_sparks_own() -> None:
    """In a process of its own: it starts and ends a Spark."""
    result = subprocess.run(
        [sys.executable, "-m", "tickthrottle", "topology", "--mermaid", "--explain"],
        env={**os.environ, **QUICK_JAVA},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    chart, live, backlog = result.stdout.split("%% Physical plan of ")
    assert chart.startswith("flowchart LR")
    assert live.startswith("a live window")
    assert backlog.startswith("a backlog")
    for plan in (live, backlog):
        assert "struct(time, " in plan
        assert all(line.startswith("%%") for line in plan.strip().splitlines()[1:])
    # The source has combined a live window's rows: they are not grouped again.
    assert "Aggregate" not in live
    # Nothing but the instrument table goes from task to task.
    assert live.count("Exchange") == live.count("BroadcastExchange") > 0
    assert "max(struct(time, " in backlog
    assert backlog.count("Exchange") > backlog.count("BroadcastExchange") > 0
