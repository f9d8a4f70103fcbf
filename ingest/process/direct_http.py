"""Opens addresses over HTTP; no other place of the product does.

A proxy of the environment (``http_proxy``) is for what lies beyond it: exchanges, and
gateways elsewhere. It cannot reach this machine's own addresses, and operators' ports
are nobody else's business.
"""

import urllib.request
from http.client import HTTPResponse
from typing import cast
from urllib.parse import urlsplit

from tickthrottle_client.loopback import is_loopback

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def open_direct(
    request: urllib.request.Request | str, timeout_s: float
) -> HTTPResponse:
    """Open an address without a proxy; raises as ``urllib.request.urlopen`` does."""
    return cast("HTTPResponse", _DIRECT.open(request, timeout=timeout_s))


def open_url(request: urllib.request.Request, timeout_s: float) -> HTTPResponse:
    """Open an address: this machine's own directly, others as the environment says.

    Raises as ``urllib.request.urlopen`` does.
    """
    if is_loopback(urlsplit(request.full_url).hostname or ""):
        return open_direct(request, timeout_s)
    return cast(
        "HTTPResponse", urllib.request.build_opener().open(request, timeout=timeout_s)
    )
