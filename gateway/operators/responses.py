"""What the operators' routes say of themselves in the OpenAPI document."""

from typing import Any

from gateway.http.openapi import answers, problem_response

Responses = dict[int | str, dict[str, Any]]

_ALWAYS = (401, 403, 500)

UNKNOWN_CLIENT = "unknown_client", "No such client", "c-7f3a9102: is not connected"

UNKNOWN_INCIDENT = "unknown_incident", "No such incident", "i-1: is not remembered"

UNKNOWN_JOB = "unknown_job", "No such job", "low: has never run on this stream"


def ops_answers(
    model: Any,
    description: str,
    *further: int,
    missing: tuple[str, str, str] | None = None,
) -> Responses:
    """Return a route's ``responses``; ``missing`` describes its 404, if it has one."""
    responses: Responses = answers(model, *_ALWAYS, *further, description=description)
    return (
        responses
        if missing is None
        else responses | {404: problem_response(404, missing)}
    )


def metrics_answers() -> Responses:
    """Return the ``responses`` of the metrics: text, not JSON."""
    example = "tickthrottle_gateway_frames_sent_total 9010000.0\n"
    problems: Responses = {status: problem_response(status) for status in _ALWAYS}
    good = {
        "description": "The metrics",
        "content": {"text/plain": {"example": example}},
    }
    return {200: good, **problems}


def closed_answers() -> Responses:
    """Return the ``responses`` of the route that closes a client."""
    problems: Responses = {status: problem_response(status) for status in _ALWAYS}
    return {
        204: {"description": "It is closed"},
        **problems,
        404: problem_response(404, UNKNOWN_CLIENT),
    }


def noted_answers() -> Responses:
    """Return the ``responses`` of the route that writes a note to an incident."""
    problems: Responses = {
        status: problem_response(status) for status in (*_ALWAYS, 400, 503)
    }
    return {
        204: {"description": "It is noted"},
        **problems,
        404: problem_response(404, UNKNOWN_INCIDENT),
    }
