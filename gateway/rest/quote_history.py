"""REST: what an issue did, as far back as the archive goes."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from gateway.http.authorization import Permit, check_allowed
from gateway.http.conditional import ConditionalAnswers
from gateway.http.openapi import answers, conditional
from gateway.http.parameters import LATEST_MS
from gateway.http.problems import Problem
from gateway.http.schemas import History
from gateway.rest.archive_gaps import gaps_object
from gateway.rest.issues import IssueKey, Known
from gateway.rest.selection import resolve
from gateway.upstream.archived_windows import ArchivedWindows, ArchiveUnreadable
from gateway.upstream.issue_history import IssueHistory

MOST_POINTS = 20_000
"""Most windows one request may ask for: more than a day of trading has."""

From = Annotated[
    int | None,
    Query(
        alias="from",
        ge=0,
        le=LATEST_MS,
        description="begin with the first window that ends then or later, ms; without "
        "it the newest windows are told",
    ),
]
To = Annotated[
    int | None,
    Query(
        alias="to",
        ge=0,
        le=LATEST_MS,
        description="the last window ends then or earlier, ms",
    ),
]


def create_router(
    archived: ArchivedWindows,
    memory: IssueHistory,
    known: Known,
    permit: Permit,
    answer: ConditionalAnswers,
) -> APIRouter:
    """Build the router of histories: the archive, and what is newer than it."""
    router = APIRouter(tags=["quotes"])

    @router.get(
        "/v1/quotes/{issue}/history",
        responses=answers(
            History,
            *(400, 401, 403, 404, 503),
            description="The issue's history",
            is_conditional=True,
        ),
        openapi_extra=conditional(),
    )
    async def get_quote_history(
        request: Request,
        issue: IssueKey,
        from_ms: From = None,
        to_ms: To = None,
        limit: Annotated[
            int, Query(ge=1, le=MOST_POINTS, description="most windows")
        ] = 1_000,
    ) -> Response:
        """The windows in which an issue traded, oldest first; days back if archived."""
        isin = resolve(issue, known())
        check_allowed(permit(request), isin)
        try:
            # Before what is in memory: a window that is stored meanwhile is in both.
            stored_ms = await archived.last_ms()
            points = await archived.points(isin, from_ms, to_ms, limit + 1)
            gaps = await archived.gaps(from_ms, to_ms)
        except ArchiveUnreadable as error:
            raise Problem(503, "unavailable", str(error)) from None
        bodies = {point.window: point.encode() for point in points}
        for point in memory.of(isin, MOST_POINTS):
            is_wanted = (from_ms or 0) <= point.window and (
                to_ms is None or point.window <= to_ms
            )
            # Of the archive's newest window a part may have come later.
            if is_wanted and (point.window >= stored_ms or point.window not in bodies):
                bodies[point.window] = point.encode()
        windows = sorted(bodies)
        chosen = windows[-limit:] if from_ms is None else windows[:limit]
        is_cut = from_ms is not None and len(windows) > limit
        body = b'{"isin":"%b","count":%d,"next":%b,"gaps":%b,"data":[%b]}' % (
            isin.encode(),
            len(chosen),
            b"%d" % windows[limit] if is_cut else b"null",
            gaps_object(gaps),
            b",".join(bodies[window] for window in chosen),
        )
        return answer.give(request, body)

    return router
