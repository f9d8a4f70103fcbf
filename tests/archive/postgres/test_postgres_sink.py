"""The archive in a real PostgreSQL: every window once, whatever happens to either."""

import json
import random
import time
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis
from typer.testing import CliRunner

from archive import archiver
from archive.account import rows_of_log, stored_day
from archive.archive_process import open_counts
from archive.contract.segment import day_of, span_of
from archive.postgres.postgres_sink import PostgresSink
from archive.settings import ArchiveSettings
from cli.command_line import app
from ingest.redis_keys import Keys
from tests.archive.postgres.server import PASSWORD, PostgresServer
from tests.archive.rig import (
    ISINS,
    archiving,
    be_frozen,
    be_killed,
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

pytestmark = pytest.mark.redis
NAME = "postgres"


@pytest.fixture
def settings(server: PostgresServer, redis_url: str, tmp_path: Path) -> ArchiveSettings:
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
    """With the digits of its prices and the names of its instruments."""
    publisher.list_instruments()
    publish(publisher, 3)
    publisher.publish()
    publisher.publish(make_row(SAMSUNG, "0.30", 9, 7))
    with archiving(settings):
        wait_until_stored(client, 5, NAME)
    check_whole(client, server)
    counts = open_counts(settings)
    log = rows_of_log(read_snapshots(client))
    every = 0, 2**53
    kept = stored_day(counts.windows(*every), counts.rows(*every))
    assert kept == {place: (window, window.rows) for place, window in log.items()}
    assert counts.rows(0, 1) == counts.windows(0, 1) == []
    [row] = server.ask(
        "SELECT price, trades, extract(epoch FROM time) * 1000000, listed, fields "
        f"FROM tickthrottle_rows WHERE isin = '{SAMSUNG}'",
    )
    assert str(row[0]) == "0.30"
    assert row[1:] == (7, Decimal(1_773_964_802_000_009), False, None)


@pytest.mark.parametrize("step", ["copied", "put", "committed"])
def test_a_kill_at_any_step_leaves_no_double_row(
    step: str,
    client: redis.Redis,
    publisher: Publisher,
    server: PostgresServer,
    settings: ArchiveSettings,
) -> None:
    be_killed(settings, step, client, publisher, is_killed=step == "put")
    check_whole(client, server)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive that says after a second that it has no answer."""
    monkeypatch.setattr(archiver, "SILENT_S", 1.0)


@pytest.mark.usefixtures("impatient")
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
            # What the gateway has read may be older.
            eventually(lambda: archive_findings(gateway) == [], 20)
            proxy.pause()
            publish_live(20)
            [silent] = eventually(lambda: archive_findings(gateway), 30)
            assert silent["text"] == f"The archive {NAME} has been behind"
            assert silent["since_ms"] == began_ms + 2 * 2_000
            words = "postgres has not answered for "
            eventually(
                lambda: archive_findings(gateway)[0]["detail"].startswith(words), 30
            )
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


@pytest.mark.usefixtures("impatient")
def test_a_server_that_is_frozen_is_noticed(
    client: redis.Redis,
    publisher: Publisher,
    server: PostgresServer,
    settings: ArchiveSettings,
) -> None:
    """Its connections stand and nothing fails: it is said all the same."""
    with archiving(settings) as ends:
        publish(publisher, 2)
        wait_until_stored(client, 2, NAME)
        server.freeze()
        try:
            publish(publisher, 2)
            problem = eventually(lambda: state_of(client, NAME).problem, 20)
            assert problem.startswith("postgres has not answered for ")
        finally:
            server.thaw()
        wait_until_stored(client, 4, NAME)
        eventually(lambda: state_of(client, NAME).problem is None, 20)
        assert ends == []
        publish(publisher, 2)
        server.freeze()
    # Told to stop, it does not wait for ever either.
    assert ends == []
    server.thaw()
    with archiving(settings):
        wait_until_stored(client, 6, NAME)
    check_whole(client, server)


@pytest.mark.parametrize("step", ["copied", "put"])
def test_an_archive_that_is_frozen_in_a_transaction_holds_up_nobody(
    step: str,
    client: redis.Redis,
    publisher: Publisher,
    server: PostgresServer,
    settings: ArchiveSettings,
) -> None:
    """What it has locked is given back; when it goes on it ends."""
    be_frozen(settings, step, client, publisher)
    check_whole(client, server)


def test_a_day_is_the_same_in_sql(server: PostgresServer, tmp_path: Path) -> None:
    tables = PostgresSink(server.url(), 0, "days")
    tables.open()
    tables.close()
    midnight_ms = span_of(date(2026, 3, 20))[1]
    chance = random.Random(7)
    moments = [midnight_ms + n for n in (-1_000, -1, 0, 1, 1_000)]
    moments += [chance.randrange(1, 4 * 10**12) for _ in range(200)]
    for zone in ("UTC", "Asia/Seoul", "America/New_York"):
        with psycopg.connect(server.url(), options=f"-c timezone={zone}") as asked:
            rows = asked.execute(
                "SELECT ms, tickthrottle_day(to_timestamp(ms / 1000.0)) "
                "FROM unnest(%s::bigint[]) AS moments (ms)",
                [moments],
            ).fetchall()
        assert len(rows) == len(moments)
        assert all(day == day_of(ms) for ms, day in rows)


def test_show_has_a_line_for_each_day(
    client: redis.Redis,
    publisher: Publisher,
    server: PostgresServer,
    settings: ArchiveSettings,
) -> None:
    """As of files: the window that ends at midnight is of the day before."""
    midnight_ms = span_of(date(2026, 3, 20))[1]
    for number in range(-1, 3):
        row = make_row(ISINS[0], seq=number + 9)
        publisher.publish_lost(row, window=midnight_ms + number * 2_000)
    publisher.publish_lost(window=midnight_ms + 5 * 86_400_000)
    files = settings.model_copy(update={"postgres_url": ""})
    for chosen in (settings, files):
        with archiving(chosen):
            wait_until_stored(client, 5, chosen.name)
    shown = []
    for where in (("--postgres", server.url()), ("--dir", str(settings.archive_dir))):
        done = CliRunner().invoke(app, ["archive", "--show", "--json", *where])
        shown.append(json.loads(done.stdout))
    assert shown[0] == shown[1]
    assert [(day["day"], day["windows"]) for day in shown[0]["days"]] == [
        ("2026-03-20", 2),
        ("2026-03-21", 2),
        ("2026-03-25", 1),
    ]
    assert shown[0]["gaps"] == shown[0]["damaged"] == []


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
        (
            "CREATE TABLE tickthrottle_archive (version int); "
            "INSERT INTO tickthrottle_archive VALUES (1)",
            "an older version, 1; this is 2",
        ),
        (
            "CREATE TABLE tickthrottle_archive (version int); "
            "INSERT INTO tickthrottle_archive VALUES (3)",
            "a newer version, 3; this is 2",
        ),
    ],
    ids=["older", "newer"],
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
