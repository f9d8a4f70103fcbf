"""`status` asks a real gateway."""

import json

import pytest
import redis

from gateway import health_monitor
from gateway.health import jobs
from ingest.redis_keys import Keys
from ingest.tradelog.redis_log_reader import open_log
from tests.cli.running import printed
from tests.conftest import eventually
from tests.dead_proxy import DEAD_PROXY
from tests.gateway.servers import Gateway, running_gateway
from tests.ports import free_port
from throttle.contract.candidate import candidate_field, encode_candidate

pytestmark = pytest.mark.redis


def url_of(gateway: Gateway) -> str:
    return f"http://127.0.0.1:{gateway.operators.port}"


def test_a_pipeline_without_a_job_has_a_fault(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends with 1, and says what to do."""
    monkeypatch.setattr(health_monitor, "STARTING_S", 0.0)
    with running_gateway(redis_url) as gateway:
        # What it logs of its start would be among the lines.
        gateway.wait_for("reloads")
        lines = printed("status", "--url", url_of(gateway), code=1).splitlines()
        answer = json.loads(
            printed("status", "--url", url_of(gateway), "--json", code=1)
        )
    assert lines[0].startswith("FAULT: ")
    assert [line.split()[0] for line in lines[-6:]] == [
        *("feed", "log", "job", "stream", "gateway", "clients")
    ]
    assert answer["diagnosis"]["level"] == "bad"


def test_a_start_is_no_fault(redis_url: str) -> None:
    """It ends with 0, and says that not all is known."""
    with running_gateway(redis_url) as gateway:
        gateway.wait_for("reloads")
        lines = printed("status", "--url", url_of(gateway), code=0).splitlines()
        incidents = json.loads(gateway.operators.get("/v1/incidents")[1])["data"]
    assert lines[0].startswith("?: ")
    assert incidents == []


def test_a_start_that_does_not_end_is_a_fault(
    redis_url: str, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the exit code, the reasons and the incidents, until prices move."""
    monkeypatch.setattr(jobs, "LONGEST_START_MS", 1_000)
    with running_gateway(redis_url) as gateway:
        gateway.wait_for("reloads")
        note_candidate(client, "host:1:a")

        def findings() -> list[str]:
            body = gateway.operators.get("/v1/pipeline")[1]
            diagnosis = json.loads(body)["diagnosis"]
            return [finding["code"] for finding in diagnosis["findings"]]

        eventually(lambda: findings() == ["starting"])
        printed("status", "--url", url_of(gateway), code=0)
        eventually(lambda: findings() == ["start_fails"])
        lines = printed("status", "--url", url_of(gateway), code=1).splitlines()
        assert lines[0].startswith("FAULT: The throttle job has failed to start since ")
        assert "it has been starting for " in lines[0]
        assert "See its log" in lines[1]
        ready = json.loads(gateway.get("/health/ready")[1])
        assert [reason["code"] for reason in ready["reasons"]] == ["start_fails"]

        def incidents() -> list[tuple[str, int | None]]:
            listed = json.loads(gateway.operators.get("/v1/incidents")[1])["data"]
            return [(one["code"], one["until_ms"]) for one in listed]

        eventually(lambda: incidents() == [("start_fails", None)])


def test_a_redis_that_does_not_answer_leaves_nothing_known() -> None:
    """There may have been any number of trades."""
    with running_gateway(f"redis://127.0.0.1:{free_port()}") as gateway:
        lines = printed("status", "--url", url_of(gateway), code=1).splitlines()
    assert lines[0].startswith("FAULT: Redis has not answered")
    shown = {line.split()[0]: line.split(maxsplit=2)[-1] for line in lines[-6:]}
    assert shown["feed"] == shown["job"] == shown["stream"] == "not known"


def note_candidate(client: redis.Redis, owner: str) -> None:
    """Say that a job is about to publish, for longer than a test lasts."""
    open_log(client, "tt", 1)
    seconds, micros = client.time()
    until_ms = seconds * 1_000 + micros // 1_000 + 600_000
    value = encode_candidate(owner, until_ms)
    client.hset(Keys("tt").meta, candidate_field("throttle"), value)


def test_a_port_for_everybody_has_no_status(redis_url: str) -> None:
    """The sentence names the address and what it answers."""
    with running_gateway(redis_url) as gateway:
        url = f"http://127.0.0.1:{gateway.port}"
        sentence = printed("status", "--url", url, code=3)
    assert sentence.startswith(f"tickthrottle: {url}/v1/pipeline answers 404: ")


def test_nobody_there_is_told_in_a_sentence() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    assert printed("status", "--url", url, code=3).startswith(
        f"tickthrottle: no gateway answers at {url}/v1/pipeline: "
    )
    assert printed("status", "--url", "here", code=2) == (
        "tickthrottle: url 'here': must be like http://127.0.0.1:8000/\n"
    )


def test_no_proxy_is_asked_for_an_operators_port(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Company networks have one in every environment; it knows nothing of loopback."""
    with running_gateway(redis_url) as gateway:
        gateway.wait_for("reloads")
        for name, value in DEAD_PROXY.items():
            monkeypatch.setenv(name, value)
        answer = json.loads(
            printed("status", "--url", url_of(gateway), "--json", code=0)
        )
    assert answer["diagnosis"]["level"] == "unknown"
