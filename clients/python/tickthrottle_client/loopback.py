"""Which hosts are this machine itself: no proxy leads there.

Pure.
"""

from ipaddress import IPv6Address, ip_address


def is_loopback(host: str) -> bool:
    """Tell whether a host, as an address names it, is this machine itself.

    By its name or number alone; nothing is looked up. ``127.1`` is one, too.
    """
    host = host.strip("[]").rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        parts = host.split(".")
        return parts[0] == "127" and all(part.isdecimal() for part in parts)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    # A connection to "every address" goes to this machine.
    return address.is_loopback or address.is_unspecified
