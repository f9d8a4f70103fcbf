"""Whose connections are counted together."""

from gateway.admission.addresses import UNKNOWN, address_of


def test_a_peer_cannot_have_more_addresses_than_it_was_given() -> None:
    """A network of IPv6 is one; what a proxy let through as text is one for all."""
    cases: list[tuple[str, str]] = [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::1"),
        ("192.0.2.300", UNKNOWN),
        ("x" * 60_000, UNKNOWN),
        ("", UNKNOWN),
    ]
    for host, expected in cases:
        assert address_of({"client": (host, 1)}) == expected


def test_a_connection_without_an_address_counts_with_its_like() -> None:
    """A Unix socket names none."""
    assert address_of({"client": None}) == address_of({}) == UNKNOWN
