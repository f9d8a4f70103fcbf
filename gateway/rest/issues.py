"""REST: the issue table, and what each issue did."""

import asyncio
from collections.abc import Callable
from typing import Annotated, TypeAlias

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from gateway.admission.tokens import TokenGrant
from gateway.http.authorization import Permit, check_allowed
from gateway.http.conditional import ConditionalAnswers, make_etag
from gateway.http.openapi import answers, conditional
from gateway.http.problems import Problem
from gateway.http.schemas import Chart, ListedIssue, ListedIssues
from gateway.rest.selection import Wish, resolve, select
from gateway.upstream.issue_history import IssueHistory, points_object
from ingest.issue_table.known_issues import Issues

POINTS_LIMIT = 1_000
"""Most windows one request may ask for; the window log usually holds fewer."""

Market = Annotated[
    str | None, Query(min_length=1, description="a market of the issue table")
]
Sector = Annotated[
    str | None, Query(min_length=1, description="a sector of the issue table")
]
IssueKey = Annotated[
    str,
    Path(
        description="an ISIN, or a code of the issue table",
        examples=["KR7005930003"],
    ),
]


Known: TypeAlias = Callable[[], Issues]
"""Returns what is known of all issues now."""

MAX_SEARCH_CHARS = 100


def create_router(
    known: Known, history: IssueHistory, permit: Permit, answer: ConditionalAnswers
) -> APIRouter:
    """Build the router of issues."""
    router = APIRouter(tags=["issues"])

    @router.get(
        "/v1/issues",
        responses=answers(
            ListedIssues,
            *(400, 401),
            description="The issues that fit all that is asked for",
            is_conditional=True,
        ),
        openapi_extra=conditional(),
    )
    async def list_issues(
        request: Request,
        q: Annotated[
            str | None,
            Query(
                min_length=1,
                max_length=MAX_SEARCH_CHARS,
                description="part of a name, or the beginning of a code or ISIN",
                examples=["samsung"],
            ),
        ] = None,
        market: Market = None,
        sector: Sector = None,
    ) -> Response:
        """What is known of the issues, in order of ISINs."""
        grant, issues = permit(request), known()
        wish = Wish(market=market, sector=sector)
        wanted = select(wish, issues)
        etag = make_etag(
            issues.digest.encode(),
            grant.encode_keys(),
            wish.encode(),
            repr(q).encode(),
        )

        async def build() -> bytes:
            return await asyncio.to_thread(_encode, issues, wanted, q, grant)

        return await answer.give_named(request, etag, build)

    @router.get(
        "/v1/issues/{issue}",
        responses=answers(
            ListedIssue,
            *(400, 401, 403, 404),
            description="What is known of the issue",
            is_conditional=True,
        ),
        openapi_extra=conditional(),
    )
    async def get_issue(request: Request, issue: IssueKey) -> Response:
        """What is known of one issue."""
        grant, issues = permit(request), known()
        isin = resolve(issue, issues)
        check_allowed(grant, isin)
        entry = issues.get(isin)
        if entry is None:
            raise Problem(404, "unknown_key", f"{isin}: is not in the issue table")
        return answer.give(request, entry.encoded)

    @router.get(
        "/v1/issues/{issue}/windows",
        responses=answers(
            Chart,
            *(400, 401, 403, 404),
            description="The issue's history",
            is_conditional=True,
        ),
        openapi_extra=conditional(),
    )
    async def get_issue_windows(
        request: Request,
        issue: IssueKey,
        limit: Annotated[
            int, Query(ge=1, le=POINTS_LIMIT, description="most windows")
        ] = 300,
    ) -> Response:
        """The newest windows in which an issue traded, oldest first."""
        grant = permit(request)
        isin = resolve(issue, known())
        check_allowed(grant, isin)
        return answer.give(request, points_object(isin, history.of(isin, limit)))

    return router


def _encode(
    issues: Issues, wanted: frozenset[str] | None, q: str | None, grant: TokenGrant
) -> bytes:
    bodies = [
        issue.encoded
        for issue in (issues if q is None else issues.search(q))
        if (wanted is None or issue.isin in wanted) and grant.allows(issue.isin)
    ]
    return b'{"count":%d,"data":[%b]}' % (len(bodies), b",".join(bodies))
