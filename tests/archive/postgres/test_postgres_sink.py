"""The archive in a real PostgreSQL: every window once, whatever happens to either."""

import json
import signal
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from archive.account import rows_of_log, stored_day
from archive.archive_process import open_counts
from archive.settings import ArchiveSettings
from tests.archive.postgres.server import PASSWORD, PostgresServer
from tests.archive.rig import (
    ISINS,
    archive_process,
    archiving,
    publish,
    settings_of,
    state_of,
    wait_until_stored,
)
from tests.conftest import eventually
from tests.e2e.proxy import Proxy, take_all
from tests.gateway.publisher import Publisher
from tests.gateway.samples import EPOCH, SAMSUNG, make_row
from tests.gateway.servers import Gateway, running_gateway
from tests.published import read_snapshots
from throttle.contract.redis_keys import Keys

pytestmark = pytest.mark.redis
NAME = "postgres"


@pytest.fixture
def publisher(client: redis.Redis) -> Publisher:
    """A stream of windows."""
    return Publisher(client)


@pytest.fixture
def settings(server: PostgresServer, redis_url: str, tmp_path: Path) -> ArchiveSettings:
    """An archive to a database without tables."""
    return settings_of(redis_url, tmp_path, postgres_url=server.url())


def check_whole(client: redis.Redis, server: PostgresServer) -> None:
    """Hold what is stored to the window log: each row once, each price's digits."""
    snapshots = read_snapshots(client)
    found = server.ask('SELECT epoch, "offset", rows FROM tickthrottle_windows')
    assert sorted(found) == [(s.epoch, s.offset, len(s.rows)) for s in snapshots]
    found = server.ask('SELECT epoch, "offset", isin FROM tickthrottle_rows')
    wanted = [(s.epoch, s.offset, row.isin) for s in snapshots for row in s.rows]
    assert sorted(found) == sorted(wanted)


def test_every_window_is_stored_with_its_rows(
    client: redis.Redis,
    publisher: Publisher,
    server: PostgresServer,
    settings: ArchiveSettings,
) -> None:
    """With the digits of its prices and the names of its issues."""
    publisher.list_issues()
    publish(publisher, 3)
    publisher.publish()
    publisher.publish(make_row(SAMSUNG, "0.30", 9, 7))
    with archiving(settings):
        wait_until_stored(client, 5, NAME)
    check_whole(client, server)
    counts = open_counts(settings)
    log = rows_of_log(read_snapshots(client), len)
    every = 0, 2**53
    kept = stored_day(counts.windows(*every), counts.rows(*every, len))
    assert kept.windows == log
    assert kept.told == {place: window.total for place, window in log.items()}
    assert counts.rows(0, 1, len) == counts.windows(0, 1) == []
    [row] = server.ask(
        "SELECT price, trades, extract(epoch FROM time) * 1000000, listed, fields "
        f"FROM tickthrottle_rows WHERE isin = '{SAMSUNG}'",
    )
    assert str(row[0]) == "0.30"
    assert row[1:] == (7, Decimal(1_773_964_802_000_009), False, None)


def test_a_restart_goes_on_from_what_is_there(
    client: redis.Redis,
    publisher: Publisher,
    server: PostgresServer,
    settings: ArchiveSettings,
) -> None:
    """By the tables alone; a gap is named as in files."""
    publish(publisher, 3)
    with archiving(settings):
        wait_until_stored(client, 3, NAME)
    publish(publisher, 4)
    client.xtrim(Keys("tt").windows, minid="6-0", approximate=False)
    with archiving(settings):
        state = wait_until_stored(client, 7, NAME)
    assert (state.gaps, state.missing_windows) == (1, 2)
    offsets = server.ask('SELECT "offset" FROM tickthrottle_windows ORDER BY 1')
    assert offsets == [(n,) for n in (1, 2, 3, 6, 7)]


@pytest.mark.parametrize("step", ["copied", "put", "committed"])
def test_a_kill_at_any_step_leaves_no_double_row(
    step: str,
    client: redis.Redis,
    publisher: Publisher,
    server: PostgresServer,
    settings: ArchiveSettings,
) -> None:
    publish(publisher, 2)
    with archive_process(settings, crash_at=step) as process:
        assert process.wait(120) == -signal.SIGKILL
    client.delete(f"tt:lease:archive:{NAME}")
    publish(publisher, 2)
    with archiving(settings):
        wait_until_stored(client, 4, NAME)
    check_whole(client, server)


def test_a_server_that_is_restarted_is_waited_for(
    client: redis.Redis,
    publisher: Publisher,
    server: PostgresServer,
    settings: ArchiveSettings,
) -> None:
    """And while it is away, the archive says so."""
    with archiving(settings) as ends:
        publish(publisher, 2)
        wait_until_stored(client, 2, NAME)
        server.stop()
        publish(publisher, 2)
        problem = eventually(lambda: state_of(client, NAME).problem, 30)
        assert problem.startswith("postgres_url postgresql://127.0.0.1:")
        assert PASSWORD not in problem
        server.start()
        wait_until_stored(client, 4, NAME)
        assert state_of(client, NAME).problem is None
        assert ends == []
    check_whole(client, server)


def test_an_outage_that_outlasts_the_window_log_costs_what_left_it(
    client: redis.Redis,
    publisher: Publisher,
    server: PostgresServer,
    settings: ArchiveSettings,
) -> None:
    """Silence, then refused connections. Readiness names the archive meanwhile.

    It holds on to the windows that it was about to store and takes no more, so the log
    keeps the rest; what leaves the log before the end of the outage is a named gap.
    """
    publisher.know_jobs("job")
    proxy = Proxy(server.port, take_all)
    away = settings.model_copy(update={"postgres_url": server.url(port=proxy.port)})
    began_ms = time.time_ns() // 1_000_000 + 60_000

    def publish_live(windows: int) -> None:
        for _ in range(windows):
            seq = publisher.offset + 1
            end_ms = began_ms + seq * 2_000
            rows = (make_row(isin, f"{seq}.50", seq, 2) for isin in ISINS[:3])
            publisher.publish_lost(*rows, window=end_ms)
            client.hset(publisher.keys.meta, "cut:job", f'{{"end_ms":{end_ms}}}')

    try:
        with (
            archiving(away) as ends,
            running_gateway(settings.redis_url) as gateway,
        ):
            publish_live(2)
            wait_until_stored(client, 2, NAME)
            assert archive_findings(gateway) == []
            proxy.pause()
            publish_live(20)
            [silent] = eventually(lambda: archive_findings(gateway), 30)
            assert silent["text"] == f"The archive {NAME} has been behind"
            assert silent["since_ms"] == began_ms + 2 * 2_000
            assert silent["detail"].startswith("it has said nothing for ")
            proxy.cut()
            proxy.resume()
            eventually(lambda: state_of(client, NAME).problem, 30)
            held = state_of(client, NAME).offset
            publish_live(200)
            refused = eventually(
                lambda: [
                    found["detail"]
                    for found in archive_findings(gateway)
                    if found["detail"].startswith("postgres_url postgresql://127.")
                ],
                30,
            )
            assert PASSWORD not in str(refused)
            client.xtrim(Keys("tt").windows, minid="123-0", approximate=False)
            proxy.restore()
            state = wait_until_stored(client, 222, NAME)
            assert state.problem is None
            assert held == 2
            assert ends == []
            eventually(lambda: archive_findings(gateway) == [], 30)
    finally:
        proxy.close()
    stored = [n for (n,) in server.ask('SELECT "offset" FROM tickthrottle_windows')]
    taken = max(n for n in stored if n < 123)
    assert 2 < taken <= 22
    assert sorted(stored) == [*range(1, taken + 1), *range(123, 223)]
    assert len(server.ask("SELECT 1 FROM tickthrottle_rows")) == 3 * len(stored)
    assert (state.gaps, state.missing_windows) == (1, 122 - taken)
    assert f"{122 - taken} windows of epoch {EPOCH} between" in str(state.last_gap)


def archive_findings(gateway: Gateway) -> list[dict[str, Any]]:
    """Return what a gateway finds wrong with archives; they leave it ready."""
    answer = json.loads(gateway.operators.get("/v1/pipeline")[1])
    assert answer["problem"] is None
    assert "archive_behind" not in {r["code"] for r in answer["ready"]["reasons"]}
    findings = answer["diagnosis"]["findings"]
    return [found for found in findings if found["code"].startswith("archive_")]


def test_a_server_that_takes_no_writes_is_waited_for(
    client: redis.Redis,
    publisher: Publisher,
    server: PostgresServer,
    settings: ArchiveSettings,
) -> None:
    """A standby becomes the primary in time."""
    with archiving(settings) as ends:
        publish(publisher, 2)
        wait_until_stored(client, 2, NAME)
        set_read_only(server, "on")
        publish(publisher, 2)
        problem = eventually(lambda: state_of(client, NAME).problem, 30)
        assert "read-only transaction" in problem
        set_read_only(server, "off")
        wait_until_stored(client, 4, NAME)
        assert ends == []
    check_whole(client, server)


def set_read_only(server: PostgresServer, value: str) -> None:
    """Have every transaction be read-only, or none."""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("SET default_transaction_read_only = off")
        connection.execute(
            f"ALTER SYSTEM SET default_transaction_read_only = {value}".encode()
        )
        connection.execute("SELECT pg_reload_conf()")


def test_what_no_waiting_cures_is_one_sentence(
    client: redis.Redis,
    server: PostgresServer,
    settings: ArchiveSettings,
    redis_url: str,
    tmp_path: Path,
) -> None:
    """A wrong password, or a database that there is not."""
    for url, words in (
        (server.url(password="wrong"), "password authentication failed"),
        (server.url(database="nothing"), 'database "nothing" does not exist'),
    ):
        wrong = settings_of(redis_url, tmp_path, postgres_url=url)
        with archiving(wrong) as ends:
            eventually(lambda: ends, 30)
        said = str(ends[0])
        assert words in said
        assert "wrong@" not in said
        assert "\n" not in said


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("CREATE TABLE tickthrottle_windows (n int)", "an older version, without"),
        (
            "CREATE TABLE tickthrottle_archive (version int); "
            "INSERT INTO tickthrottle_archive VALUES (0)",
            "an older version, 0; this is 1",
        ),
        (
            "CREATE TABLE tickthrottle_archive (version int); "
            "INSERT INTO tickthrottle_archive VALUES (2)",
            "a newer version, 2; this is 1",
        ),
    ],
    ids=["no number", "older", "newer"],
)
def test_tables_of_another_version_are_left_alone(
    table: str,
    words: str,
    client: redis.Redis,
    server: PostgresServer,
    settings: ArchiveSettings,
) -> None:
    """With a sentence that says what to do."""
    server.ask(table)
    with archiving(settings) as ends:
        eventually(lambda: ends, 30)
    assert words in str(ends[0])
    assert "Rename or drop them" in str(ends[0])


def test_days_that_are_too_old_go(
    client: redis.Redis,
    server: PostgresServer,
    publisher: Publisher,
    redis_url: str,
    settings: ArchiveSettings,
) -> None:
    day_ms = 86_400_000
    for day in range(4):
        window = 1_773_964_804_000 + day * day_ms
        publisher.publish_lost(make_row(ISINS[0], seq=day + 1), window=window)
    kept = settings.model_copy(update={"archive_days": 2})
    with archiving(kept):
        wait_until_stored(client, 4, NAME)
        eventually(lambda: len(server.ask("SELECT 1 FROM tickthrottle_rows")) == 2, 20)
    found = server.ask('SELECT epoch, "offset" FROM tickthrottle_windows ORDER BY 2')
    assert found == [(EPOCH, 3), (EPOCH, 4)]
