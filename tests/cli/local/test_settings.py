"""Which settings of a run go together."""

import pytest
from pydantic import ValidationError

from cli.local.settings import RunSettings


def test_a_topic_is_only_for_a_run_without_a_feed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An option is refused; a variable, which may be for others, is ignored."""
    monkeypatch.delenv("TICKTHROTTLE_TRADE_LOG", raising=False)
    for feed in (None, "upbit"):
        with pytest.raises(
            ValidationError, match="with --feed none the run only reads"
        ):
            RunSettings(trade_log="kafka", feed=feed)
    assert RunSettings(trade_log="kafka", feed="none").follows_log
    monkeypatch.setenv("TICKTHROTTLE_TRADE_LOG", "kafka")
    settings = RunSettings()
    assert settings.is_simulated
    assert not settings.follows_log


def test_a_topic_without_its_log_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would not be read, silently; a variable may be for others."""
    monkeypatch.setenv("TICKTHROTTLE_KAFKA_TOPIC", "trades")
    assert RunSettings(feed="none").follows_log
    with pytest.raises(ValidationError, match="need --trade-log kafka"):
        RunSettings(feed="none", kafka_topic="other")


def test_an_adapter_of_ones_own_has_a_name_of_a_sensible_length() -> None:
    """A module and a class, in any alphabet; the error says how long it may be."""
    for feed in ("my.venue:Feed", "시장.거래소:Upbit", "a" * 200):
        assert RunSettings(feed=feed).exchange == feed
    for feed in ("a" * 201, "a b", "module:", ":Class"):
        with pytest.raises(ValidationError, match="feed"):
            RunSettings(feed=feed)


def test_a_run_without_a_feed_has_no_exchange() -> None:
    assert RunSettings(feed="upbit").exchange == "upbit"
    assert RunSettings(feed="none").exchange is None
