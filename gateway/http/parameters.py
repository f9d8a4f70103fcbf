"""A parameter that nothing reads is refused: what is ignored looks like an answer."""

from collections import Counter
from collections.abc import Collection, Iterable
from difflib import get_close_matches

from fastapi import Request
from fastapi.routing import APIRoute

from gateway.http.problems import Problem

LATEST_MS = 253_370_764_800_000
"""The beginning of the year 9999: calendars end there, and so do moments."""

MAX_SHOWN_CHARS = 60
"""This much of what was asked for is in the answer that refuses it."""


async def check_parameters(request: Request) -> None:
    """Return if the route reads every parameter of the address. Raises Problem.

    Pages are left out: what is behind their ``?`` is for their scripts.
    """
    route = request.scope.get("route")
    if isinstance(route, APIRoute) and route.include_in_schema:
        known = [parameter.alias for parameter in route.dependant.query_params]
        fault = find_fault(
            known, (name for name, _ in request.query_params.multi_items())
        )
        if fault is not None:
            raise Problem(400, "bad_request", fault)


def find_fault(known: Collection[str], names: Iterable[str]) -> str | None:
    """Say which of the ``names`` is none of the ``known``, or is there twice."""
    for name, count in Counter(names).items():
        if name not in known:
            return f"{shorten(name)}: no such parameter{_advice(name, known)}"
        if count > 1:
            return f"{name}: is there {count} times"
    return None


def shorten(text: str) -> str:
    """Return what of ``text`` is shown to whoever sent it."""
    is_short = len(text) <= MAX_SHOWN_CHARS
    return text if is_short else text[:MAX_SHOWN_CHARS] + "..."


def _advice(name: str, known: Collection[str]) -> str:
    if not known:
        return "; there are none here"
    nearest = get_close_matches(name[:MAX_SHOWN_CHARS], known, 1)
    if nearest:
        return f"; is {nearest[0]} meant?"
    return f"; there are {', '.join(known)}"
