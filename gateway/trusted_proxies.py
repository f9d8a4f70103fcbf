"""Whose word on a client's address is taken: proxies, and X-Forwarded-For. Pure."""

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

ANY_PEER = "*"

_FORWARDED = b"x-forwarded-for"


class TrustedProxies:
    """The proxies in ``text``: addresses or networks, separated by commas.

    With ``*`` whoever connects is one. An address in a header is a proxy's only if it
    is named. Raises ValueError for what is no address and no network.
    """

    def __init__(self, text: str) -> None:
        words = [word.strip() for word in text.split(",") if word.strip()]
        self._is_any_peer = ANY_PEER in words
        self._networks = [_network(word) for word in words if word != ANY_PEER]

    def is_proxy(self, peer: str) -> bool:
        """Say whether the other end of a connection is a trusted proxy."""
        return self._is_any_peer or self._is_named(peer)

    def client_of(self, headers: Iterable[tuple[bytes, bytes]]) -> str | None:
        """Return for whom a trusted proxy has sent these headers, None if for nobody.

        A proxy appends the address that it was called from, or puts it in the place of
        all others. So the last one that is no proxy's is the client's, and what stands
        before it may be anybody's invention.
        """
        values = [value for name, value in headers if name == _FORWARDED]
        words = b",".join(values).decode("latin-1").split(",")
        hosts = [_host(word.strip()) for word in words if word.strip()]
        for host in reversed(hosts):
            if not self._is_named(host):
                return host
        return hosts[0] if hosts else None

    def _is_named(self, host: str) -> bool:
        try:
            address = ip_address(host)
        except ValueError:
            return False
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address in network for network in self._networks)


def _network(word: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(word, strict=False)
    except ValueError:
        raise ValueError(
            f"{word!r}: must be an address or a network, as 10.0.0.7 or 10.0.0.0/8, "
            f"or {ANY_PEER} for whoever connects"
        ) from None


def _host(word: str) -> str:
    """Return an address without the port that some proxies put behind it."""
    if word.startswith("["):
        return word[1:].partition("]")[0]
    host, _, port = word.partition(":")
    return word if ":" in port else host
