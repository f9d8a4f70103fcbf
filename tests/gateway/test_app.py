"""The application as a whole: the page, its headers, the end of a dead feed."""

import asyncio
import shutil
import subprocess
import sys

import pytest

from gateway.app import STATIC
from tests.conftest import input_file, skip_or_fail
from tests.gateway.publisher import Publisher
from tests.gateway.servers import Gateway, running_gateway

DEAD_FEED = """
import asyncio, signal
from gateway.app import create_app
from gateway.settings import GatewaySettings

async def die():
    raise RuntimeError("a fault of our own")

async def main():
    pump = asyncio.create_task(die(), name="feed")
    pump.add_done_callback(create_app(GatewaySettings()).stop_server_on_failure)
    await asyncio.sleep(60)

asyncio.run(main())
"""


PARSE = """
const { SourceTextModule } = require("node:vm");
for (const identifier of process.argv.slice(1)) {
  const text = require("node:fs").readFileSync(identifier, "utf8");
  new SourceTextModule(text, { identifier });
}
"""


@pytest.mark.redis
def test_the_page_needs_nothing_from_elsewhere(gateway: Gateway) -> None:
    """The page and its files are served, and may load nothing from other hosts."""
    status, body, headers = gateway.fetch("/")
    assert status == 200
    assert b'<script type="module" src="static/board.js">' in body
    assert headers["content-security-policy"].startswith("default-src 'self';")
    assert headers["x-content-type-options"] == "nosniff"
    for name in ("board.js", "tick.js", "base.css"):
        status, body, headers = gateway.fetch(f"/static/{name}")
        assert (status, body) == (200, (STATIC / name).read_bytes())
        assert headers["cache-control"] == "no-cache"


@pytest.mark.redis
@pytest.mark.parametrize("port", ["port", "operators_port"])
def test_a_page_has_its_files_under_a_path_too(gateway: Gateway, port: str) -> None:
    """As people put it behind a proxy that takes the path off."""
    script = str(input_file("e/e01_subpath_proxy.py"))
    command = [sys.executable, script, str(getattr(gateway, port))]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ran.stdout.startswith("0 of "), ran.stdout + ran.stderr


@pytest.mark.redis
def test_there_are_no_interactive_api_pages(gateway: Gateway) -> None:
    """They would load scripts from elsewhere."""
    assert {gateway.get(p)[0] for p in ("/docs", "/redoc", "/openapi.json")} == {404}


def test_every_script_of_the_pages_is_valid() -> None:
    """It parses as a module; what it does is tested in a browser."""
    node = shutil.which("node")
    if node is None:
        skip_or_fail("no node on PATH")
    scripts = [p for p in STATIC.rglob("*.js") if "vendor" not in p.parts]
    assert len(scripts) > 10
    parse = [node, "--no-warnings", "--experimental-vm-modules", "-e", PARSE]
    subprocess.run([*parse, *scripts], check=True, timeout=30)


async def test_the_death_of_the_feed_takes_the_process_down() -> None:
    """Better gone than serving old prices."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", DEAD_FEED, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode not in (0, None)
    assert b"feed died" in output
    assert b"a fault of our own" in output


@pytest.mark.redis
def test_the_first_client_finds_what_is_stored(
    publisher: Publisher, redis_url: str
) -> None:
    """A gateway listens only after it has looked: a position is not lost on it."""
    publisher.publish()
    for _ in range(3):
        with running_gateway(redis_url) as gateway, gateway.stream() as stream:
            assert stream.welcome["epoch"] == publisher.epoch
