"""Who may use the operators' listener.

It is a port of its own, on loopback unless there is a token. What is for operators
only is not among the routes of the public port at all.
"""

from hashlib import sha256
from hmac import compare_digest

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.admission.origins import is_allowed
from gateway.admission.tokens import TokenRefused
from gateway.http.problems import problem

_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})


class OperatorAccess:
    """Tells operators from others."""

    def __init__(self, token: str | None) -> None:
        self._digest = None if token is None else sha256(token.encode()).digest()

    def check(self, headers: Headers) -> None:
        """Return if the request is an operator's. Raises TokenRefused if not."""
        if not self.is_operator(headers):
            raise TokenRefused("the operators' token is missing or wrong")

    def check_request(self, request: Request) -> None:
        """Return if the request is an operator's, as a dependency of its route."""
        self.check(request.headers)

    def is_operator(self, headers: Headers) -> bool:
        """Say whether a request to the operators' listener is an operator's.

        Without a token everyone is who can reach it.
        """
        if self._digest is None:
            return True
        scheme, _, token = headers.get("authorization", "").partition(" ")
        digest = sha256(token.strip().encode()).digest()
        return scheme.lower() == "bearer" and compare_digest(digest, self._digest)

    def refusal(self, method: str, headers: Headers) -> str | None:
        """Return why a browser must have been misled into this request, None if not.

        Without a token, only the names of loopback are answered: a page whose name
        was pointed at this machine could read everything otherwise. And no page of
        another origin may change anything.
        """
        host = headers.get("host", "")
        if self._digest is None and host_name(host) not in _NAMES:
            return f"Host {host}: only names of loopback are answered without a token"
        origin = headers.get("origin")
        if method not in ("GET", "HEAD") and not is_allowed(origin, host, frozenset()):
            return f"Origin {origin}: a page of another host may not change anything"
        return None


class OperatorGuard:
    """Refuses requests that ``OperatorAccess.refusal`` names a reason against."""

    def __init__(self, app: ASGIApp, access: OperatorAccess) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it."""
        if scope["type"] == "http":
            reason = self._access.refusal(scope["method"], Headers(scope=scope))
            if reason is not None:
                await problem(403, "not_allowed", reason)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def host_name(host: str) -> str:
    """Return the name in a Host header, without the port."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower()
