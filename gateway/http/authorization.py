"""What whoever sent a request may have."""

from collections.abc import Callable

from fastapi import Request

from gateway.admission.tokens import EVERYTHING, TokenGrant, TokenRefused
from gateway.http.operator_access import OperatorAccess
from gateway.http.problems import Problem
from gateway.stream.hub import Hub

Permit = Callable[[Request], TokenGrant]


def create_permit(hub: Hub, access: OperatorAccess | None) -> Permit:
    """Return the function that reads a request's token (RFC 6750, 2.1).

    It raises TokenRefused. Operators may have everything, without another token.
    """

    def permit(request: Request) -> TokenGrant:
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


def check_allowed(grant: TokenGrant, isin: str) -> None:
    """Return if an issue may be had. Raises Problem."""
    if not grant.allows(isin):
        raise Problem(403, "not_allowed", f"{isin}: not in your token")


def check_everything_allowed(grant: TokenGrant) -> None:
    """Return if every issue may be had. Raises Problem."""
    if not grant.allows_everything:
        raise Problem(403, "not_allowed", "a window holds every issue")
