"""Which web pages may open a stream, and why one may not. Pure."""

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


def refusal(origin: str | None) -> str:
    """Return why a page from ``origin`` may not, and what helps; for who asked."""
    if origin == "null":
        return (
            "a page without an origin, as one opened as a file has none: "
            "serve it, and have its origin listed in TICKTHROTTLE_ALLOWED_ORIGINS"
        )
    return "a page of another host: its origin is not in TICKTHROTTLE_ALLOWED_ORIGINS"
