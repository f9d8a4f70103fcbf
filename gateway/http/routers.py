"""Routers of one subject each, and how an application gets their routes.

FastAPI's ``include_router`` builds each route anew, with all models of its parameters
and answers: with routers in routers that was half of a gateway's start. Here a route is
built once, with what every route of an application has.
"""

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.routing import APIRoute

from gateway.http.parameters import check_parameters


def new_router(tag: str, *checks: Callable[..., Any]) -> APIRouter:
    """Return a router; a check, a dependency of its routes, may raise a Problem."""
    return APIRouter(
        tags=[tag],
        dependencies=[Depends(check) for check in (check_parameters, *checks)],
        generate_unique_id_function=name_operation,
    )


def name_operation(route: APIRoute) -> str:
    """Return a route's operation id: the name of its function."""
    return route.name


def add_routes(app: FastAPI, *routers: APIRouter) -> None:
    """Have an application answer what the routers do, the first of them first."""
    for router in routers:
        app.router.routes.extend(router.routes)
