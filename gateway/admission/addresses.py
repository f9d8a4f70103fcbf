"""What counts as one address where something is limited per address. Pure."""

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Any

UNKNOWN = "unknown"
"""The one address of all whose address cannot be read."""

SITE_BITS = 64
"""Whoever has one IPv6 address has as many as there are behind this prefix."""


def address_of(scope: Mapping[str, Any]) -> str:
    """Return the address that a connection or request (an ASGI scope) counts for.

    It is the one in ``X-Forwarded-For`` if a trusted proxy has sent it, otherwise
    the peer's.
    """
    client = scope.get("client")
    return UNKNOWN if client is None else one_address(client[0])


@lru_cache(4_096)
def one_address(host: str) -> str:
    """Return an IPv4 address as it is, an IPv6 address as its network, ``/64``.

    What is no address may have been made up, to be counted apart: it is UNKNOWN.
    """
    try:
        address = ip_address(host)
    except ValueError:
        return UNKNOWN
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        if address.is_loopback:
            return str(address)
        site = int(address) >> SITE_BITS << SITE_BITS
        return f"{IPv6Address(site)}/{SITE_BITS}"
    return str(address)
