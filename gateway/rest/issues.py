"""REST: the issue list, and what each issue did."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from gateway.admission.tokens import TokenGrant
from gateway.http.authorization import Permit, check_allowed
from gateway.http.conditional import ConditionalAnswers, make_etag
from gateway.http.openapi import answers, conditional
from gateway.http.schemas import Chart, IssueList
from gateway.rest.selection import resolve
from gateway.upstream.issue_history import IssueHistory, points_object
from ingest.issue_list import Issues

POINTS_LIMIT = 1_000
"""Most windows one request may ask for; the window log usually holds fewer."""

IssueKey = Annotated[
    str,
    Path(
        description="an ISIN, or a code of the issue list",
        examples=["KR7005930003"],
    ),
]


def create_router(
    issues: Issues, history: IssueHistory, permit: Permit, answer: ConditionalAnswers
) -> APIRouter:
    """Build the router of issues."""
    router = APIRouter(tags=["issues"])
    encoded = [(issue.isin, issue.encode()) for issue in issues]
    everything = _issues_object([body for _, body in encoded])

    async def list_for(grant: TokenGrant) -> bytes:
        if grant.keys is None:
            return everything
        return _issues_object([body for isin, body in encoded if grant.allows(isin)])

    @router.get(
        "/v1/issues",
        responses=answers(
            IssueList, 401, description="The issue list", is_conditional=True
        ),
        openapi_extra=conditional(),
    )
    async def list_issues(request: Request) -> Response:
        """Names, codes, markets, sectors and previous closes, in order of ISINs."""
        grant = permit(request)
        etag = make_etag(issues.digest.encode(), grant.encode_keys())
        return await answer.give_named(request, etag, lambda: list_for(grant))

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
        isin = resolve(issue, issues)
        check_allowed(grant, isin)
        return answer.give(request, points_object(isin, history.of(isin, limit)))

    return router


def _issues_object(bodies: list[bytes]) -> bytes:
    return b'{"count":%d,"data":[%b]}' % (len(bodies), b",".join(bodies))
