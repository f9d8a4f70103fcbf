"""Settings of the gateway."""

import pytest
from pydantic import ValidationError

from gateway.settings import GatewaySettings, read_origin


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """REDIS_URL as everywhere, the others under the product's prefix."""
    monkeypatch.setenv("REDIS_URL", "redis://elsewhere:1")
    monkeypatch.setenv("TICKTHROTTLE_PORT", "9001")
    monkeypatch.setenv("TICKTHROTTLE_QUIET_S", "2.5")
    settings = GatewaySettings()
    assert settings.redis_url == "redis://elsewhere:1"
    assert (settings.port, settings.quiet_s) == (9001, 2.5)


def test_settings_cannot_be_changed_or_be_nonsense() -> None:
    """They are read once and checked at the door."""
    with pytest.raises(ValidationError, match="frozen"):
        GatewaySettings().port = 1
    for bad in ({"port": 70_000}, {"namespace": "a:b"}, {"max_keys": 0}, {"x": 1}):
        with pytest.raises(ValidationError):
            GatewaySettings.model_validate(bad)


@pytest.mark.parametrize(
    "bad", ["docs.example", "javascript:x", "https://d/", "ws://d"]
)
def test_an_address_of_documents_is_one_of_a_site(bad: str) -> None:
    """It becomes a link; the page's name is put behind it."""
    for good in ("https://d.example", "http://d:8080/tickthrottle"):
        assert GatewaySettings(docs_url=good).docs_url == good
    with pytest.raises(ValidationError, match="docs_url"):
        GatewaySettings(docs_url=bad)


def test_a_relay_follows_a_gateway_and_nothing_else() -> None:
    """What the upstream decides is not set here; a token is for an upstream."""
    for good in ("http://a:8000", "wss://prices.example/ticks"):
        assert GatewaySettings(follow=good).not_here is not None
    assert not GatewaySettings(follow=good).has_firehose
    for bad in ("a:8000", "redis://a", "http://", "http://u:p@a", "http://a?x=1"):
        with pytest.raises(ValidationError, match="follow"):
            GatewaySettings(follow=bad)
    with pytest.raises(ValidationError, match="served_market 'KOSPI': with follow"):
        GatewaySettings(follow=good, served_market="KOSPI")
    with pytest.raises(ValidationError, match="follow_token_file: only with follow"):
        GatewaySettings(follow_token_file="token")


def test_origins_are_a_list_in_one_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Separated by commas; a bad one is named."""
    monkeypatch.setenv(
        "TICKTHROTTLE_ALLOWED_ORIGINS", "https://a.example, http://b:3000,"
    )
    assert GatewaySettings().allowed_origins == {"https://a.example", "http://b:3000"}
    monkeypatch.setenv("TICKTHROTTLE_ALLOWED_ORIGINS", "a.example")
    with pytest.raises(ValidationError, match=r"allowed_origins\n.*'a\.example': must"):
        GatewaySettings()


def test_what_is_no_origin_is_named() -> None:
    """A list that never matches would be found out too late."""
    for bad in [
        "example.com",
        "https://a/",
        "https://",
        "https://:443",
        "ws://a",
        "https://a b",
        "*.a",
        "https://a:0",
        "https://a:65536",
        "https://a:b",
        "https://[",
        "https://[::1",
    ]:
        with pytest.raises(ValueError, match=r"must be like https://example\.com"):
            read_origin(bad)


def test_an_origin_is_read_as_browsers_send_it() -> None:
    """What fits no page that was meant would be found out too late."""
    for written, sent in [
        ("https://shop.example:443", "https://shop.example"),
        ("http://shop.example:80", "http://shop.example"),
        ("http://shop.example:443", "http://shop.example:443"),
        ("http://shop.example:", "http://shop.example"),
        ("HTTPS://Shop.Example:8443", "https://shop.example:8443"),
        ("http://[::1]:80", "http://[::1]"),
        ("http://[::1]:3000", "http://[::1]:3000"),
        ("*", "*"),
    ]:
        assert read_origin(written) == sent


def test_a_page_without_an_origin_cannot_be_listed() -> None:
    """``null`` would let in every page of every stranger that hides its origin."""
    with pytest.raises(ValueError, match="serve the page, and list where"):
        read_origin("null")
