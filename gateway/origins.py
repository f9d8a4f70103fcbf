"""Which web pages may open a stream. Does no I/O."""

import re
from collections.abc import Collection
from urllib.parse import urlsplit

ANY = "*"

_ORIGIN = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+")


def check_origins(origins: Collection[str]) -> None:
    """Raise ValueError for what is no origin: ``https://host``, a port, no path."""
    for origin in origins:
        if origin != ANY and not _ORIGIN.fullmatch(origin):
            raise ValueError(
                f"{origin!r}: must be like https://example.com or "
                f"http://localhost:3000, or {ANY} for every page"
            )


def is_allowed(origin: str | None, host: str | None, allowed: Collection[str]) -> bool:
    """Say whether a page from ``origin`` may open a stream at ``host``.

    Browsers name the page's origin and no page can change that; other programs name
    none and are allowed. A page that came from this host may always.
    """
    if origin is None or origin in allowed or ANY in allowed:
        return True
    return host is not None and urlsplit(origin).netloc == host
