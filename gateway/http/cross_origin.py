"""Response headers by which browsers let a page of another host read an answer.

The rules are those of the Fetch standard, https://fetch.spec.whatwg.org/#http-cors-protocol.
"""

from collections.abc import Collection

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

REQUEST_HEADERS = ("Authorization", "If-None-Match", "Last-Event-ID")
"""What such a page may send beside what every page may."""

ANSWER_HEADERS = ("ETag", "Retry-After")
"""What such a page may read of an answer's headers beside what every page may."""

PREFLIGHT_LASTS_S = 600
"""For this long a browser does not ask again whether it may send its request."""


class CrossOrigin(CORSMiddleware):
    """Answers browsers that ask for a page of another host whether it may read.

    A page may if its origin is in ``allowed_origins``, ``*`` stands for every page;
    browsers send no cookies along. Whoever is refused gets the answer all the same, and
    the browser withholds it from the page.
    """

    def __init__(self, app: ASGIApp, allowed_origins: Collection[str]) -> None:
        super().__init__(
            app,
            allow_origins=allowed_origins,
            allow_methods=("GET", "HEAD"),
            allow_headers=REQUEST_HEADERS,
            expose_headers=ANSWER_HEADERS,
            max_age=PREFLIGHT_LASTS_S,
        )
