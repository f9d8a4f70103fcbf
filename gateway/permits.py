"""What whoever sent a request may have."""

from collections.abc import Callable

from fastapi import Request

from gateway.hub import Hub
from gateway.operators import OperatorAccess
from gateway.problems import Problem
from gateway.tokens import EVERYTHING, Grant, TokenRefused

Permit = Callable[[Request], Grant]


def create_permit(hub: Hub, access: OperatorAccess | None) -> Permit:
    """Return the function that reads a request's token (RFC 6750, 2.1).

    It raises TokenRefused. Operators may have everything, without another token.
    """

    def permit(request: Request) -> Grant:
        if hub.tokens is None:
            return EVERYTHING
        if access is not None and access.is_operator(request.headers):
            return EVERYTHING
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        try:
            if scheme.lower() != "bearer":
                raise TokenRefused("the request has no header Authorization: Bearer")
            return hub.tokens.read(token.strip())
        except TokenRefused:
            hub.counters.clients_token_refused += 1
            raise

    return permit


def check_allowed(grant: Grant, isin: str) -> None:
    """Return if an issue may be had. Raises Problem."""
    if not grant.allows(isin):
        raise Problem(403, "not_allowed", f"{isin}: not in your token")


def check_everything_allowed(grant: Grant) -> None:
    """Return if every issue may be had. Raises Problem."""
    if not grant.allows_everything:
        raise Problem(403, "not_allowed", "a window holds every issue")
