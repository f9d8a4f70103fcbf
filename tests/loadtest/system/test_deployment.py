"""A deployment for a load, and the whole of `tickthrottle load` against it."""

import json
import os
import signal
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
import redis
from pydantic import TypeAdapter
from rich.console import Console

from cli.commands.load_choices import LoadChoices
from ingest.redis_keys import Keys
from ingest.settings import IngestSettings
from loadtest.command import run_command
from loadtest.judge.audit import audit
from loadtest.judge.books import movement, wait_for_books
from loadtest.judge.following import following
from loadtest.load_run import carry_out
from loadtest.plan import LoadPlan, Search, plan_of
from loadtest.report.console import RunDisplay
from loadtest.results import Result as Report
from loadtest.system.deployment import (
    Deployment,
    DeploymentError,
    attached,
    local,
)
from loadtest.system.usage import usage_of
from tests.conftest import PATIENCE, eventually
from tests.e2e.processes import running
from tests.ports import free_port
from tests.quick_java import QUICK_JAVA
from throttle.audit.published import PublishedHistory

PARTS = {"valkey", "gateway", "throttle driver", "throttle JVM", "throttle worker"}
QUICK = {
    "TICKTHROTTLE_MAX_AHEAD_MS": "4000",
    **QUICK_JAVA,
}
EVERY_KIND = "watch:6,market:1,slow:1,stalled:1,reconnecting:1,sse:1,polling:1"

Test = TypeVar("Test", bound=Callable[..., None])


def with_spark(test: Test) -> Test:
    for mark in (pytest.mark.e2e, pytest.mark.spark, pytest.mark.redis):
        test = mark(test)
    return pytest.mark.timeout(300)(test)


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    with local(window_ms=500, settings=QUICK) as started:
        yield started


def names(deployment: Deployment) -> set[str]:
    return {named.name for named in deployment.processes()}


def fetch(deployment: Deployment, path: str) -> Any:
    host, port = deployment.targets[0]
    with urllib.request.urlopen(f"http://{host}:{port + 1}{path}") as answer:
        return json.load(answer)


@with_spark
def test_a_local_deployment_publishes_and_says_what_it_is(
    deployment: Deployment,
) -> None:
    """Without a feed: empty windows, its parts by name, settings as they were given."""
    with redis.Redis.from_url(deployment.redis_url) as client:
        length = client.xlen(Keys(deployment.namespace).windows)
        eventually(lambda: client.xlen(Keys(deployment.namespace).windows) > length)
    assert names(deployment) == PARTS
    assert (deployment.window_ms, deployment.max_ahead_ms) == (500, 4_000)
    assert deployment.job == "throttle"
    assert deployment.ingest.trade_log_cap == 20_000_000
    settings = fetch(deployment, "/v1/settings")
    assert "20000" in json.dumps(settings)
    assert deployment.incidents() == []


@with_spark
def test_one_can_attach_to_a_deployment_that_runs(deployment: Deployment) -> None:
    """The same windows, and here the same processes; another stream is refused."""
    host, port = deployment.targets[0]
    url = f"http://{host}:{port}"
    ingest = deployment.ingest
    with attached([url], ingest) as found:
        assert found.targets == deployment.targets
        assert found.window_ms == 500
        assert names(found) == PARTS
    other = IngestSettings(redis_url=ingest.redis_url, namespace="other")
    with (
        pytest.raises(DeploymentError, match="has published nothing under other:meta"),
        attached([url], other),
    ):
        pass
    with redis.Redis.from_url(ingest.redis_url) as client:
        fields = {"epoch": "foreign", "window_ms": 500, "cut:throttle": "{}"}
        client.hset(Keys("other").meta, mapping=fields)
    with (
        pytest.raises(DeploymentError, match=r"has foreign under other"),
        attached([url], other),
    ):
        pass


@with_spark
def test_what_spark_publishes_is_what_the_log_says(
    deployment: Deployment, tmp_path: Path
) -> None:
    """A market with all its faults, audited from its start to its end."""
    url, namespace, job = deployment.redis_url, deployment.namespace, deployment.job
    with (
        usage_of(deployment.processes, list) as usage,
        following(url, namespace, job, deployment.window_ms) as follower,
        redis.Redis.from_url(url) as client,
    ):
        market = ("--rate", "3000", "--seconds", "5", "--malformed", "0.02")
        with running(tmp_path, "simulate", *market, REDIS_URL=url) as feed:
            assert feed.process.wait(60 * PATIENCE) == 0, feed.log()
        end_ms = time.time() * 1_000
        past = PublishedHistory(client, namespace)
        until = wait_for_books(past, job, end_ms, within_s=20)
        assert until is not None
        assert follower.wait_for(until.upto.end_ms, within_s=10)
        found = audit(deployment, follower, until)
        books = movement(follower.start.ledger, until)
    assert (books.problems, follower.faults) == ([], [])
    assert found.audit.differences == []
    assert found.audit.notes == []
    assert found.audit.trades == books.read > 10_000
    truth = follower.run.reference(found.first_news_ms)
    assert sum(map(len, truth.instruments.values())) >= books.published > 0
    shares = {one.name: one.cpu[0] for one in usage.processes([end_ms])}
    assert shares.keys() == PARTS
    assert all(share is not None for share in shares.values())


def read(path: Path) -> Report:
    return TypeAdapter(Report).validate_json(path.read_bytes())


def choose(**choices: Any) -> LoadChoices:
    # How late a window may be is no matter of tests: they share the machine.
    small = {"rate": 300, "warm_up_s": 5, "seconds": 6, "rules": ("lag.p99>60s",)}
    return LoadChoices(**{**small, **choices})


def measure(deployment: Deployment, plan: LoadPlan) -> Report:
    with RunDisplay(Console(quiet=True)) as display:
        return carry_out(plan, plan.feed.isins(), deployment, display)


@with_spark
def test_a_load_of_every_kind(
    deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything balances and nobody found a fault; a threshold that nothing can keep
    is said, and the report says so. Redis is where the environment says.
    """
    rule = "lag.p99>1ms"
    ((host, port),) = deployment.targets
    monkeypatch.setenv("REDIS_URL", deployment.redis_url)
    kinds = choose(
        clients=48,
        mix=EVERY_KIND,
        rules=(rule,),
        gateways=(f"http://{host}:{port}",),
        out=tmp_path / "a",
    )
    assert not run_command(kinds)
    result = read(tmp_path / "a.json")
    outcome = result.outcome
    assert [one.rule for one in outcome.checks if one.is_broken] == [rule]
    assert sum(kind.clients for kind in outcome.kinds) == 48
    assert len(outcome.kinds) == 7
    assert outcome.faults == []
    assert outcome.audit is not None
    assert outcome.audit.trades >= outcome.feeding.acknowledged > 0
    # A batch that holds a window from before begins with the next one.
    assert 0 < outcome.books.read <= outcome.feeding.acknowledged
    assert outcome.lag_ms.count
    assert len(outcome.windows.end_ms) == 12
    names = {process.name for process in outcome.processes}
    assert names >= {"gateway", "throttle driver", "load clients", "load feed"}
    page = (tmp_path / "a.html").read_text("utf-8")
    assert "It did not hold" in page


@with_spark
def test_a_search_goes_on_to_its_end(deployment: Deployment) -> None:
    """A load that holds is the last one, if it is the most."""
    search = Search("clients", start=100, most=100, grain=100, step_s=4)
    plan = replace(plan_of(choose(raised="clients")), search=search)
    found = measure(deployment, plan).capacity
    assert found is not None
    assert [(step.load, step.is_good) for step in found.steps] == [(100, True)]
    assert (found.last_good, found.first_bad) == (100, None)


@with_spark
def test_polling_is_compared_with_the_stream(deployment: Deployment) -> None:
    """Who polls asks for every price; how old both are is measured, not judged."""
    plan = plan_of(choose(compares_polling=True, clients=20))
    result = measure(deployment, replace(plan, polls_every_s=(2.0,)))
    assert result.is_passed
    polling, stream = result.comparison
    assert (polling.name, stream.name) == ("polling every 2 s", "WebSocket")
    for way in (polling, stream):
        [kind] = way.kinds
        assert kind.clients == 20
        assert kind.staleness_ms.mean is not None
        assert kind.staleness_ms.mean > 0
    # Each asks at most four times in six seconds; on a slow machine less often.
    assert 0 < polling.kinds[0].requests <= 20 * 4
    assert stream.kinds[0].requests == 0


@with_spark
def test_a_part_that_dies_is_an_incident_and_comes_back(
    deployment: Deployment,
) -> None:
    """The gateway is killed: it is told, and the next one is in the list."""
    gateway = next(p for name, p in deployment.processes() if name == "gateway")
    os.kill(gateway.pid, signal.SIGKILL)
    eventually(lambda: deployment.incidents() == ["the gateway ended (SIGKILL)"])
    eventually(lambda: names(deployment) == PARTS)
    assert gateway.pid not in {p.pid for _, p in deployment.processes()}


def test_a_taken_port_is_said_in_one_sentence() -> None:
    """Nothing is started when the page could not be served."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(DeploymentError, match=f"port {port}: Address already in"),
            local(port=port),
        ):
            pass


def test_a_bad_address_is_said_in_one_sentence() -> None:
    for gateways, words in (
        ([], "at least one address is needed"),
        (["ftp://127.0.0.1:1"], "must be like http://127.0.0.1:8000"),
        (["https://prices.example"], "without TLS"),
        (["http://127.0.0.1:99999"], "must be like"),
    ):
        with (
            pytest.raises(DeploymentError, match=words),
            attached(gateways, IngestSettings()),
        ):
            pass


def test_what_cannot_be_reached_is_named(redis_url: str) -> None:
    """No server, then a server without a stream, then a stream without its gateway."""
    port = free_port()
    gateway = f"http://127.0.0.1:{port}"
    nowhere = IngestSettings(redis_url=f"redis://127.0.0.1:{port}/0")
    with (
        pytest.raises(DeploymentError, match=f"redis_url redis://127.0.0.1:{port}"),
        attached([gateway], nowhere),
    ):
        pass
    ingest = IngestSettings(redis_url=redis_url)
    with redis.Redis.from_url(redis_url) as client:
        fields = {"epoch": "e", "window_ms": 500, "cut:throttle": "{}"}
        client.hset(Keys("tt").meta, mapping=fields)
    with (
        pytest.raises(DeploymentError, match=f"gateway {gateway}/health/ready: "),
        attached([gateway], ingest),
    ):
        pass
