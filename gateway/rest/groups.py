"""REST: the newest figures of markets and sectors."""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response

from gateway.http.conditional import make_etag
from gateway.http.openapi import conditional
from gateway.http.parameters import shorten
from gateway.http.problems import Problem
from gateway.http.schemas import GroupAnswer, GroupsAnswer
from gateway.protocol.messages import split_keys
from gateway.rest.rest_parts import RestParts
from gateway.stream.frames import list_object
from tickthrottle_client.tick_v1 import GROUP, is_group


def create_router(rest: RestParts) -> APIRouter:
    """Build the router of groups."""
    router = APIRouter(tags=["groups"])
    permit, answer = rest.permit, rest.answer

    @router.get(
        "/v1/groups", **conditional(GroupsAnswer, "The groups that have figures")
    )
    async def list_groups(request: Request) -> Response:
        """Newest figures of every market and sector, in order of keys.

        Markets and sectors that have not traded yet are left out.
        """
        caller = permit(request)
        board, position = caller.board, caller.board.position
        name = f"{position.epoch}:{position.offset}"
        etag = make_etag(name.encode(), caller.encode_rights())

        async def build() -> bytes:
            # What the table no longer names is of the past.
            keys, _ = split_keys(board.groups.keys(), caller.instruments)
            caller.charge(len(keys))
            bodies = map(board.groups.get, filter(caller.grant.allows, keys))
            return list_object(position, [body for body in bodies if body is not None])

        return await answer.give_named(request, etag, build)

    @router.get(
        "/v1/groups/{group:path}",
        **conditional(GroupAnswer, "The group's newest figures", 403, 404),
    )
    async def get_group(
        request: Request,
        group: Annotated[
            str, Path(description="its key", examples=["group:market:KOSPI"])
        ],
    ) -> Response:
        """Newest figures of one market or sector."""
        caller = permit(request)
        if not is_group(group):
            detail = f"{shorten(group)}: a group's key begins with {GROUP}"
            raise Problem(404, "unknown_key", detail)
        if not caller.grant.allows(group):
            raise Problem(403, "not_allowed", f"{shorten(group)}: not in your token")
        _, rejected = split_keys([group], caller.instruments)
        for rejection in rejected:
            detail = f"{shorten(group)}: {rejection.message}"
            raise Problem(404, rejection.code, detail)
        body = caller.board.groups.get(group)
        if body is None:
            raise Problem(404, "unknown_key", f"{shorten(group)}: has not traded yet")
        return answer.give(request, body)

    return router
