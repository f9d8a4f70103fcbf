"""Whatever a client asks for, the answer is one the OpenAPI document promises."""

from contextlib import suppress

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.examples import many
from tests.gateway.servers import Gateway

pytestmark = pytest.mark.redis

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]
# The same questions in every run: what fails here fails elsewhere, too.
FEW = settings(
    max_examples=many(20),
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def ask_everything(gateway: Gateway, mode: GenerationMode, tags: set[str]) -> set[str]:
    """Ask for all that has one of the tags; return the paths that were asked for."""
    url = f"http://{gateway.host}:{gateway.port}/v1/openapi.json"
    schema = schemathesis.openapi.from_url(url)
    asked = set()
    with requests.Session() as session:
        for found in schema.get_all_operations():
            operation = found.ok()
            if not tags & set(operation.tags or ()):
                continue

            @FEW
            @given(operation.as_strategy(generation_mode=mode))
            def ask(case: Case) -> None:
                case.call_and_validate(session=session, checks=CHECKS)

            # Where any text will do, no question is a bad one.
            with suppress(Unsatisfiable):
                ask()
                asked.add(operation.path)
    return asked


# Not the stream of events, which does not end: transport/test_sse.py has it.
PUBLIC = {"analytics", "instruments", "quotes", "windows", "version", "health"}


def test_the_public_port_keeps_its_promises(listed: Gateway) -> None:
    """No fault; no status, type, body or header but those that are described."""
    asked = ask_everything(listed, GenerationMode.POSITIVE, PUBLIC)
    assert {"/v1/quotes", "/v1/windows/{end_ms}", "/health/ready"} <= asked
    asked = ask_everything(listed, GenerationMode.NEGATIVE, PUBLIC)
    assert {"/v1/windows", "/v1/instruments/{instrument}/windows"} <= asked


def test_the_operators_port_keeps_its_promises(listed: Gateway) -> None:
    """The same for what only operators have."""
    operators = listed.operators
    asked = ask_everything(operators, GenerationMode.POSITIVE, {"operators"})
    assert {"/v1/pipeline", "/v1/clients/{client_id}", "/v1/dead-letters"} <= asked
    asked = ask_everything(operators, GenerationMode.NEGATIVE, {"operators"})
    assert {"/v1/clients", "/v1/pipeline/windows"} <= asked
