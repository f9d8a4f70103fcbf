"""REST: the newest figures of markets and sectors."""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response

from gateway.http.conditional import make_etag
from gateway.http.openapi import conditional
from gateway.http.parameters import shorten
from gateway.http.problems import Problem
from gateway.http.routers import new_router
from gateway.http.schemas import GroupAnswer, GroupsAnswer
from gateway.protocol.messages import split_keys
from gateway.rest.rest_parts import RestParts
from gateway.stream.frames import list_object
from tickthrottle_client.tick_v1 import GROUP, is_group


def create_router(rest: RestParts) -> APIRouter:
    """Build the router of groups."""
    router = new_router("groups")
    permit, answer = rest.permit, rest.answer

    @router.get(
        "/v1/groups", **conditional(GroupsAnswer, "The groups that have figures", 429)
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
        **conditional(GroupAnswer, "The group's newest figures", 403, 404, 429),
    )
    async def get_group(
        request: Request,
        group: Annotated[
            str, Path(description="its key", examples=["group:market:KOSPI"])
        ],
    ) -> Response:
        """Newest figures of one market or sector."""
        caller = permit(request)
        _, rejected = split_keys([group], caller.instruments)
        body = caller.board.groups.get(group)
        status, code = 404, "unknown_key"
        if not is_group(group):
            rule = f"a group's key begins with {GROUP}"
        elif not caller.grant.allows(group):
            status, code, rule = 403, "not_allowed", "not in your token"
        elif rejected:
            code, rule = rejected[0].code, rejected[0].message
        elif body is None:
            rule = "has not traded yet"
        else:
            return answer.give(request, body)
        raise Problem(status, code, f"{shorten(group)}: {rule}")

    return router
