"""Whose address counts, whatever stands in X-Forwarded-For."""

import pytest

from gateway.trusted_proxies import TrustedProxies

CLIENT, INVENTED, NEAR, FAR = "192.0.2.7", "203.0.113.9", "10.0.0.1", "172.16.9.9"


def client_of(proxies: str, *values: str) -> str | None:
    """Return whom such headers name."""
    headers = [(b"x-forwarded-for", value.encode()) for value in values]
    return TrustedProxies(proxies).client_of([(b"host", b"x"), *headers])


def test_what_a_client_writes_in_front_does_not_count() -> None:
    """The last address is the one that the proxy itself has seen."""
    for values in [
        # A proxy that replaces; one that appends, and the same with a line of its own.
        (CLIENT,),
        (f"{INVENTED}, {CLIENT}",),
        (INVENTED, CLIENT),
        (f"{NEAR}, {CLIENT}:5123",),
        (f"[{INVENTED}, {CLIENT}, ",),
    ]:
        for proxies in (NEAR, "10.0.0.0/8", "*", f"*, {FAR}"):
            assert client_of(proxies, *values) == CLIENT


@pytest.mark.parametrize("proxies", [f"{NEAR},172.16.0.0/12", f"*,{FAR}"])
def test_a_chain_of_named_proxies_is_gone_back(proxies: str) -> None:
    """To the last address that is no proxy's."""
    assert client_of(proxies, f"{INVENTED}, {CLIENT}, {FAR}") == CLIENT
    assert client_of(proxies, f"::ffff:{FAR}, {FAR}") == f"::ffff:{FAR}"
    # One of two is not named: all its clients are one, and nobody is another one.
    assert client_of(NEAR, f"{INVENTED}, {CLIENT}, {FAR}") == FAR


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("[2001:db8::1]:443", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("unknown", "unknown"),
        (" , ", None),
        ("", None),
    ],
)
def test_an_address_may_have_a_port(value: str, expected: str | None) -> None:
    """What is no address is nobody's that is counted apart."""
    assert client_of("*", value) == expected


def test_only_a_proxy_that_is_named_is_believed() -> None:
    """An address, a network, or with ``*`` everybody."""
    proxies = TrustedProxies("127.0.0.1, ::1,10.1.2.3/8")
    for peer in ("127.0.0.1", "::1", "10.9.9.9", "::ffff:10.0.0.1"):
        assert proxies.is_proxy(peer)
    for peer in ("127.0.0.2", CLIENT, "2001:db8::1", "proxy"):
        assert not proxies.is_proxy(peer)
    assert TrustedProxies("*").is_proxy(CLIENT)
    assert not TrustedProxies("").is_proxy("127.0.0.1")


@pytest.mark.parametrize("text", ["proxy.example", "10.0.0.0/33", "*.example"])
def test_what_is_no_address_is_refused(text: str) -> None:
    """The sentence says what may stand there."""
    with pytest.raises(ValueError, match=r"10\.0\.0\.0/8"):
        TrustedProxies(text)
