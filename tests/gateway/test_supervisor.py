"""Several workers of one gateway, as processes."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest

from gateway.server import GatewayFailed
from gateway.settings import GatewaySettings
from gateway.supervisor import run_workers
from gateway.workers.pulse import BEAT_S, FROZEN_LOOKS, LOST_LOOKS
from tests.conftest import PATIENCE, eventually
from tests.gateway.crew import WORKERS, Crew, crew
from tests.gateway.publisher import Publisher
from tests.gateway.samples import HYNIX, SAMSUNG, make_row
from tests.gateway.servers import Gateway
from tests.metrics import read_samples
from tests.ports import free_port

# Each test starts a supervisor and its workers.
pytestmark = pytest.mark.slow


@pytest.fixture
def metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which they keep their metrics."""
    folder = tmp_path / "metrics"
    folder.mkdir()
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(folder))
    return folder


@pytest.fixture
def running(publisher: Publisher, redis_url: str, tmp_path: Path) -> Iterator[Crew]:
    """Two workers that follow; one window is published already."""
    publisher.publish(make_row(SAMSUNG), make_row(HYNIX))
    with crew(redis_url, tmp_path) as found:
        yield found


@pytest.mark.redis
def test_operators_see_one_gateway(running: Crew, publisher: Publisher) -> None:
    """Whichever worker answers: clients, counters, metrics and windows are of all."""
    gateway, operators = running.gateway, running.gateway.operators
    with ExitStack() as stack:
        streams = [stack.enter_context(gateway.stream("?keys=*")) for _ in range(40)]
        for stream in streams:
            stream.take("ack")
            stream.take("snapshot")
        eventually(lambda: all(w["clients"] >= 5 for w in running.reports()))
        assert gateway.health()["clients"] == 40
        publisher.publish(make_row(SAMSUNG, "2", 2))
        for stream in streams:
            assert stream.take("update")["offset"] == 2
        for _ in range(4):
            listed = orjson.loads(operators.get("/v1/clients?limit=100")[1])
            assert listed["count"] == len(listed["data"]) == 40
            ids = {client["id"] for client in listed["data"]}
            assert ids == {stream.welcome["connection"] for stream in streams}
            one = streams[7].welcome["connection"]
            assert orjson.loads(operators.get(f"/v1/clients/{one}")[1])["id"] == one
        assert operators.get("/v1/clients/c-00000000")[0] == 404
        eventually(lambda: newest_window(operators)["clients"] == 40)
        eventually(lambda: sample(operators, "tickthrottle_gateway_clients") == 40)
        sent = "tickthrottle_gateway_frames_sent_total"
        eventually(lambda: sample(operators, sent) >= 160)
        assert sample(operators, "tickthrottle_processes") == WORKERS
    eventually(lambda: gateway.health()["clients"] == 0)


@pytest.mark.redis
def test_an_operator_closes_anybodys_client(running: Crew) -> None:
    """Whichever worker is asked, and whoever's client it is."""
    gateway = running.gateway
    with ExitStack() as stack:
        streams = [stack.enter_context(gateway.stream("?keys=*")) for _ in range(8)]
        for stream in streams:
            assert gateway.operators.close_client(stream.welcome["connection"]) == 204
            assert stream.close_code() == 4429
        assert gateway.operators.close_client("c-00000000") == 404
    eventually(lambda: gateway.health()["clients"] == 0)
    eventually(lambda: gateway.count("clients_operator_closed") == 8)


@pytest.mark.redis
def test_incidents_are_the_same_whoever_is_asked(running: Crew) -> None:
    """One worker keeps them. No job has ever run here: there is one."""
    operators = running.gateway.operators

    def listed() -> Any:
        listed = orjson.loads(operators.get("/v1/incidents")[1]).get("data", ())
        return [one for one in listed if one["code"] == "job_dead"]

    [incident] = eventually(listed)
    path = f"/v1/incidents/{incident['id']}/note?text="
    for note in map(str, range(8)):
        assert operators.send("PUT", f"{path}{note}") == 204
        assert [one["note"] for one in listed()] == [note]
    assert operators.send("PUT", "/v1/incidents/x/note?text=y") == 404


@pytest.mark.redis
def test_a_worker_that_dies_begins_again(
    metrics: Path, running: Crew, publisher: Publisher
) -> None:
    """The other's clients notice nothing; what it had counted stays counted."""
    gateway, files = running.gateway, sorted(metrics.iterdir())
    with ExitStack() as stack:
        for _ in range(30):
            stack.enter_context(gateway.stream("?keys=*")).take("ack")
        eventually(lambda: gateway.count("frames_sent") >= 90)
        first, other = eventually(lambda: running.reports_of(30))
        os.kill(first["pid"], signal.SIGKILL)
        eventually(lambda: gateway.health()["clients"] == other["clients"])
        assert gateway.count("frames_sent") >= 90
        again = eventually(lambda: running.reports_without(first["pid"]), 40)
        assert again[1]["pid"] == other["pid"]
        assert again[0]["pid"] != first["pid"]
        assert (again[0]["clients"], again[1]["clients"]) == (0, other["clients"])
        # It takes clients again.
        publisher.publish(make_row(SAMSUNG, "2", 2))
        for _ in range(20):
            stack.enter_context(gateway.stream("?keys=*")).take("ack")
        eventually(lambda: running.reports()[0]["clients"] > 0)
        sent = "tickthrottle_gateway_frames_sent_total"
        eventually(lambda: sample(gateway.operators, sent) >= 150)
        assert sample(gateway.operators, "tickthrottle_processes") == WORKERS
        assert sorted(metrics.iterdir()) == files


@pytest.mark.redis
def test_a_worker_that_stands_still_is_replaced(running: Crew, tmp_path: Path) -> None:
    """Operators are told, and new clients served; also where it kept the incidents."""
    gateway, frozen = running.gateway, running.reports()[0]
    others = set(running.pids()) - {frozen["pid"]}
    os.kill(frozen["pid"], signal.SIGSTOP)
    eventually(lambda: not psutil.pid_exists(frozen["pid"]), FROZEN_LOOKS * BEAT_S + 5)
    reports = eventually(lambda: running.reports_without(frozen["pid"]), 40)
    assert others < {report["pid"] for report in reports}
    with ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(gateway.stream("?keys=*")).take("ack")

    def losses(path: str, *names: str) -> list[Any]:
        answer = orjson.loads(gateway.operators.get(path)[1])
        for name in names:
            answer = answer[name]
        return [one for one in answer if one["code"] == "worker_lost"]

    [finding] = losses("/v1/pipeline", "diagnosis", "findings")
    assert (finding["level"], finding["detail"]) == ("warn", "worker 0")
    eventually(lambda: losses("/v1/incidents", "data"))
    text = (tmp_path / "log").read_text()
    lines = [orjson.loads(line) for line in text.splitlines() if line[:1] == "{"]
    [line] = [line for line in lines if line["event"] == "worker frozen, killed"]
    assert (line["worker"], line["pid"]) == (0, frozen["pid"])
    eventually(
        lambda: not losses("/v1/pipeline", "diagnosis", "findings"), LOST_LOOKS + 10
    )


@pytest.mark.redis
def test_a_gateway_that_stood_still_as_a_whole_keeps_its_workers(
    running: Crew, tmp_path: Path
) -> None:
    """As on a machine that was suspended: the supervisor did not look meanwhile."""
    pids = running.pids()
    for pid in (running.process.pid, *pids):
        os.kill(pid, signal.SIGSTOP)
    until_s = time.monotonic() + (FROZEN_LOOKS + 2) * BEAT_S
    eventually(lambda: time.monotonic() > until_s, 2 * FROZEN_LOOKS * BEAT_S)
    for pid in (running.process.pid, *pids):
        os.kill(pid, signal.SIGCONT)
    until_s = time.monotonic() + 3 * BEAT_S
    eventually(lambda: time.monotonic() > until_s)
    assert eventually(lambda: running.pids() == pids)
    assert "frozen" not in (tmp_path / "log").read_text()


@pytest.mark.redis
def test_limits_hold_over_all_workers(redis_url: str, tmp_path: Path) -> None:
    """Of streams and of requests; who dies gives its places back."""
    limits = {"max_clients_per_address": 10, "requests_per_second": 3}
    with (
        crew(redis_url, tmp_path, **limits) as running,
        ExitStack() as stack,
    ):
        gateway = running.gateway
        for _ in range(10):
            stack.enter_context(gateway.stream())
        for _ in range(6):
            assert gateway.close_code_of_a_new_stream() == 1013
        reports = eventually(lambda: running.reports_of(10))
        victim = max(reports, key=lambda worker: int(worker["clients"]))
        os.kill(victim["pid"], signal.SIGKILL)
        eventually(lambda: gateway.health()["clients"] == 10 - victim["clients"])
        eventually(lambda: running.reports_without(victim["pid"]), 40)
        for _ in range(victim["clients"]):
            stack.enter_context(gateway.stream())
        assert gateway.close_code_of_a_new_stream() == 1013
        began_s = time.monotonic()
        statuses = [gateway.get("/v1/quotes")[0] for _ in range(70)]
        let_in = len(statuses) - statuses.count(429)
        assert 30 <= let_in <= 31 + 3 * (time.monotonic() - began_s)


@pytest.mark.redis
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_ends_all_workers(running: Crew, stop: signal.Signals) -> None:
    """Each closes its streams, as a gateway alone does, and nothing is left."""
    gateway, pids = running.gateway, running.pids()
    with ExitStack() as stack:
        streams = [stack.enter_context(gateway.stream()) for _ in range(10)]
        running.process.send_signal(stop)
        for stream in streams:
            assert stream.take("notice")["code"] == "restart"
            assert stream.close_code() == 1012
    assert running.process.wait(40 * PATIENCE) == 0
    assert not any(psutil.pid_exists(pid) for pid in pids)


@pytest.mark.redis
def test_workers_stop_when_their_supervisor_was_killed(running: Crew) -> None:
    """They would keep the port, and nobody could begin them again."""
    pids = running.pids()
    with running.gateway.stream() as stream:
        running.process.kill()
        assert stream.take("notice")["code"] == "restart"
    eventually(lambda: not any(psutil.pid_exists(pid) for pid in pids), 20)


def test_what_is_wrong_is_told_once(tmp_path: Path) -> None:
    """Before any worker begins."""
    with pytest.raises(GatewayFailed, match="token_key_file"):
        run_workers(
            GatewaySettings(port=0, workers=2, token_key_file=tmp_path / "none"), print
        )
    taken = GatewaySettings(port=free_port(), workers=2)
    with (
        listening_at(taken.port),
        pytest.raises(GatewayFailed, match=f"port {taken.port} of 127"),
    ):
        run_workers(taken, print)


@contextmanager
def listening_at(port: int) -> Iterator[None]:
    """Have a port be somebody else's, who would share it."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind(("127.0.0.1", port))
        sock.listen()
        yield


def newest_window(operators: Gateway) -> dict[str, Any]:
    """Return the newest window that went out."""
    body = operators.get("/v1/pipeline/windows?limit=1")[1]
    window: dict[str, Any] = orjson.loads(body)["data"][-1]
    return window


def sample(operators: Gateway, name: str) -> float:
    """Add up a metric over its labels."""
    body = operators.get("/metrics")[1].decode()
    return sum(
        value for key, value in read_samples(body).items() if key.startswith(name)
    )
