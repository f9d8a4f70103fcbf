"""Which web pages may open a stream. Pure."""

from collections.abc import Collection
from urllib.parse import urlsplit

from gateway.settings import ANY_ORIGIN


def is_allowed(origin: str | None, host: str | None, allowed: Collection[str]) -> bool:
    """Say whether a page from ``origin`` may open a stream at ``host``.

    Browsers name the page's origin and no page can change that; other programs name
    none and are allowed. A page that came from this host may always.
    """
    if origin is None or origin in allowed or ANY_ORIGIN in allowed:
        return True
    try:
        return host is not None and urlsplit(origin).netloc == host
    except ValueError:
        return False
