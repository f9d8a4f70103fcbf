"""`status` asks a real gateway."""

import json

import pytest
from typer.testing import CliRunner

from deploy.cli import app
from gateway import backend
from tests.dead_proxy import DEAD_PROXY
from tests.gateway.servers import Gateway, running_gateway
from tests.ports import free_port

pytestmark = pytest.mark.redis


def run(*arguments: str, code: int) -> str:
    """Run the command; return what it prints, or its sentence if it fails."""
    result = CliRunner().invoke(app, ["status", *arguments])
    assert result.exit_code == code, result.output
    return result.stderr if code > 1 else result.stdout


def url_of(gateway: Gateway) -> str:
    """Return the address of the operators' port."""
    return f"http://127.0.0.1:{gateway.operators.port}"


def test_a_pipeline_without_a_job_has_a_fault(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends with 1, and says what to do."""
    monkeypatch.setattr(backend, "STARTING_S", 0.0)
    with running_gateway(redis_url) as gateway:
        # What it logs of its start would be among the lines.
        gateway.wait_for("reloads")
        lines = run("--url", url_of(gateway), code=1).splitlines()
        answer = json.loads(run("--url", url_of(gateway), "--json", code=1))
    assert lines[0].startswith("FAULT: ")
    assert [line.split()[0] for line in lines[-6:]] == [
        *("feed", "log", "job", "stream", "gateway", "clients")
    ]
    assert answer["diagnosis"]["level"] == "bad"


def test_a_start_is_no_fault(redis_url: str) -> None:
    """It ends with 0, and says that not all is known."""
    with running_gateway(redis_url) as gateway:
        gateway.wait_for("reloads")
        lines = run("--url", url_of(gateway), code=0).splitlines()
        incidents = json.loads(gateway.operators.get("/v1/incidents")[1])["data"]
    assert lines[0].startswith("?: ")
    assert incidents == []


def test_a_port_for_everybody_has_no_status(redis_url: str) -> None:
    """The sentence names the address and what it answers."""
    with running_gateway(redis_url) as gateway:
        url = f"http://127.0.0.1:{gateway.port}"
        sentence = run("--url", url, code=3)
    assert sentence.startswith(f"tickthrottle: {url}/v1/pipeline answers 404: ")


def test_nobody_there_is_told_in_a_sentence() -> None:
    """So is what is no address."""
    url = f"http://127.0.0.1:{free_port()}"
    assert run("--url", url, code=3).startswith(
        f"tickthrottle: no gateway answers at {url}/v1/pipeline: "
    )
    assert run("--url", "here", code=2) == (
        "tickthrottle: url 'here': must be like http://127.0.0.1:8000/\n"
    )


def test_no_proxy_is_asked_for_an_operators_port(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Company networks have one in every environment; it knows nothing of loopback."""
    with running_gateway(redis_url) as gateway:
        gateway.wait_for("reloads")
        for name, value in DEAD_PROXY.items():
            monkeypatch.setenv(name, value)
        answer = json.loads(run("--url", url_of(gateway), "--json", code=1))
    assert answer["diagnosis"]["level"] == "bad"
