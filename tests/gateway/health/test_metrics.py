"""What the gateway counts, told to Prometheus."""

from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path

import pytest
import redis
from prometheus_client import CollectorRegistry

from gateway.health.metrics import GatewayMetrics
from gateway.health.readiness import REASONS, Reason
from gateway.stream.close_log import CloseLog
from gateway.stream.counters import Counters
from gateway.stream.window_timings import WindowTimings
from tests.conftest import eventually
from tests.e2e.processes import running
from tests.gateway.publisher import Publisher
from tests.gateway.samples import SAMSUNG, make_row, make_snapshot
from tests.gateway.servers import Gateway, running_gateway
from tests.metrics import read_samples
from tests.ports import free_port
from tickthrottle_client.tick_v1 import CloseCode

PREFIX = "tickthrottle_gateway_"


class Shown:
    """Metrics, and what they show."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.metrics = GatewayMetrics(self.registry)

    def value(self, name: str, **labels: str) -> float | None:
        """Return a value by the end of its name."""
        return self.registry.get_sample_value(PREFIX + name, labels)


def test_every_counter_is_a_metric_and_grows_with_it() -> None:
    """A counter that somebody adds cannot be forgotten."""
    shown, counters = Shown(), Counters()
    for times in (1, 2):
        for number, field in enumerate(fields(Counters), 1):
            setattr(counters, field.name, times * number)
        shown.metrics.count(counters, CloseLog())
        for number, field in enumerate(fields(Counters), 1):
            assert shown.value(f"{field.name}_total") == times * number


def test_closes_are_counted_by_who_and_code() -> None:
    """Also those that come later than the first look."""
    shown, close_log = Shown(), CloseLog()
    shown.metrics.count(Counters(), close_log)
    close_log.by_us("c-1", CloseCode.SLOW, "slow", 0.0)
    close_log.by_client(1000)
    close_log.by_client(3999)
    shown.metrics.count(Counters(), close_log)
    assert shown.value("closes_total", by="gateway", code="4408") == 1
    assert shown.value("closes_total", by="client", code="1000") == 1
    assert shown.value("closes_total", by="client", code="other") == 1
    assert shown.value("closes_total", by="client", code="1001") == 0


def test_a_window_is_observed_once_when_its_last_client_was_served() -> None:
    """However often the metrics are renewed meanwhile."""
    shown, timings = Shown(), WindowTimings()
    first = make_snapshot(1, make_row())
    timings.begin(first, 2)
    shown.metrics.windows_went_out(timings)
    assert shown.value("fanout_lag_seconds_count") == 0
    timings.finish(first.window + 300)
    for _ in range(3):
        shown.metrics.windows_went_out(timings)
    assert shown.value("fanout_lag_seconds_count") == 1
    assert shown.value("fanout_lag_seconds_sum") == pytest.approx(0.3)
    second = make_snapshot(2, make_row(seq=2))
    timings.begin(second, 0)
    timings.finish(second.window + 900)
    shown.metrics.windows_went_out(timings)
    assert shown.value("publish_lag_seconds_count") == 2
    # Nobody was there to be served.
    assert shown.value("fanout_lag_seconds_count") == 1


def test_every_reason_not_to_be_ready_is_a_series() -> None:
    """So that an alert sees it come and go."""
    shown = Shown()
    shown.metrics.judged([Reason("quiet", "no trade", 0)])
    assert shown.value("ready") == 0
    for code in REASONS:
        assert shown.value("not_ready", reason=code) == (code == "quiet")
    shown.metrics.judged([])
    assert shown.value("ready") == 1
    assert shown.value("not_ready", reason="quiet") == 0


def scrape(gateway: Gateway) -> dict[str, float]:
    """Return every sample of a gateway, by name and labels."""
    status, body = gateway.operators.get("/metrics")
    assert status == 200
    return read_samples(body.decode())


@pytest.mark.redis
def test_a_scrape_shows_what_happens_and_only_to_operators(
    client: redis.Redis, redis_url: str
) -> None:
    """Windows, frames, clients, closes, lags: all of it moves."""
    publisher = Publisher(client)
    publisher.publish(make_row())
    with running_gateway(redis_url) as gateway:
        eventually(gateway.is_loaded)
        before = scrape(gateway)
        assert before[PREFIX + "clients{state=live}"] == 0
        assert gateway.get("/metrics")[0] == 404
        with gateway.stream() as stream:
            stream.subscribe(SAMSUNG)
            publisher.publish(make_row(seq=2))
            stream.take("update")
            eventually(lambda: scrape(gateway)[PREFIX + "clients{state=live}"] == 1)
            stream.connection.send(b"\x00")
            assert stream.close_code() == CloseCode.UNSUPPORTED
        with gateway.stream():
            pass

        def has_closed() -> bool:
            now = scrape(gateway)
            return now[PREFIX + "closes_total{by=client,code=1000}"] == 1

        eventually(has_closed)
        after = scrape(gateway)
    name = PREFIX + "closes_total{by=gateway,code=1003}"
    assert after[name] == before[name] + 1
    for name in (
        "frames_sent_total",
        "sent_bytes_total",
        "updates_published_total",
        "fanout_lag_seconds_count",
        "publish_lag_seconds_count",
        "loop_lag_seconds_count",
        "newest_window_timestamp_seconds",
    ):
        assert after[PREFIX + name] > before[PREFIX + name], name
    assert after[PREFIX + "sent_bytes_total"] > 200
    assert after["tickthrottle_resident_memory_bytes{process=gateway}"] > 10_000_000


@pytest.mark.redis
def test_gateways_that_share_a_folder_are_summed_and_forgotten_when_they_end(
    client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    """Whichever of them is asked; what they have counted stays."""
    publisher = Publisher(client)
    publisher.publish(make_row())
    shared, logs = tmp_path / "metrics", tmp_path / "logs"
    shared.mkdir()
    logs.mkdir()
    ports = [(free_port(), free_port()) for _ in range(2)]
    gateways = [Gateway("127.0.0.1", port, None, ops) for port, ops in ports]
    processes = "tickthrottle_processes{process=gateway}"
    reloads = PREFIX + "reloads_total"

    def shown(gateway: Gateway, name: str) -> float | None:
        try:
            return scrape(gateway).get(name)
        except OSError:
            return None

    with ExitStack() as first, ExitStack() as second:
        for stack, (port, ops) in zip((first, second), ports, strict=True):
            arguments = ("gateway", "--port", str(port), "--redis-url", redis_url)
            environment = {
                "TICKTHROTTLE_OPERATORS_PORT": str(ops),
                "PROMETHEUS_MULTIPROC_DIR": str(shared),
            }
            stack.enter_context(running(logs, *arguments, **environment))
        for gateway in gateways:
            eventually(lambda g=gateway: shown(g, processes) == 2, 20)  # type: ignore[misc]
            # More of them where a slow machine has them look again.
            eventually(lambda g=gateway: (shown(g, reloads) or 0) >= 2)  # type: ignore[misc]
        before = shown(gateways[0], reloads) or 0
        first.close()
        eventually(lambda: shown(gateways[1], processes) == 1)
        assert (shown(gateways[1], reloads) or 0) >= before
