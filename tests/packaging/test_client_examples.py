"""Every example of the page about clients prints the price, against a real gateway."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.app import STATIC
from tests.conftest import leave_out
from tests.gateway.conftest import publisher
from tests.gateway.publisher import Publisher
from tests.gateway.samples import SAMSUNG, make_row
from tests.gateway.servers import running_gateway
from tests.paths import ROOT

__all__ = ["publisher"]

PRICE = "71900.50"


def examples(language: str) -> list[str]:
    """Return the page's blocks of a language."""
    text = (ROOT / "docs" / "clients.md").read_text("utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.S)


def command(language: str, folder: Path, text: str) -> list[str]:
    """Write an example to a folder; return what runs it there."""
    file = folder / f"main.{language}"
    file.write_text(text)
    if language == "python":
        return [sys.executable, str(file)]
    program = {"sh": "sh", "js": "node", "go": "go"}[language]
    needed = "curl" if language == "sh" else program
    if shutil.which(needed) is None:
        leave_out(f"the example for {needed}")
    if language == "js":
        (folder / "package.json").write_text(
            '{"name":"tickthrottle-client","type":"module","exports":"./tick.js"}'
        )
        shutil.copy(STATIC / "tick.js", folder)
        asked = [program, "-p", "parseInt(process.version.slice(1))"]
        version = int(subprocess.check_output(asked, text=True))
        if version < 20:
            leave_out("the example for node, which has no WebSocket before 20")
        flags = ["--experimental-websocket"] if version < 22 else []
        return [program, *flags, str(file)]
    return [program, "run", str(file)] if language == "go" else [program, str(file)]


@pytest.mark.redis
def test_the_example_for_websocat_prints_frames(
    publisher: Publisher, redis_url: str
) -> None:
    """One a line, and what is typed goes to the gateway."""
    publisher.publish(make_row(SAMSUNG, PRICE))
    with running_gateway(redis_url) as gateway:
        gateway.wait_until(1)
        [text] = examples("bash")
        text = text.replace(":8000", f":{gateway.port}").split("'")[1]
        # Beside the Python of the tests.
        command = [str(Path(sys.executable).with_name("websocat")), "-n", text]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdin.write('{"op":"ping","id":9}\n')
                process.stdin.flush()
                frames: list[dict[str, Any]] = []
                while {"pong", "snapshot"} - {frame["type"] for frame in frames}:
                    frames.append(json.loads(process.stdout.readline()))
            finally:
                process.kill()
    [snapshot] = [frame for frame in frames if frame["type"] == "snapshot"]
    assert str(snapshot["data"][0]["price"]) in PRICE


# Go compiles its library the first time.
@pytest.mark.timeout(600)
@pytest.mark.redis
@pytest.mark.parametrize(
    ("language", "number", "many"),
    [
        ("sh", 0, 1),
        # As a coroutine, and without asyncio.
        ("python", 0, 2),
        ("python", 1, 2),
        ("js", 0, 1),
        pytest.param("go", 0, 1, marks=pytest.mark.slow),
    ],
)
def test_an_example_prints_the_price(
    language: str,
    number: int,
    many: int,
    publisher: Publisher,
    redis_url: str,
    tmp_path: Path,
) -> None:
    """A newcomer can copy it; only the port differs here."""
    of_language = examples(language)
    assert len(of_language) == many
    publisher.publish(make_row(SAMSUNG, PRICE))
    with running_gateway(redis_url) as gateway:
        gateway.wait_until(1)
        text = of_language[number].replace(":8000", f":{gateway.port}")
        done = subprocess.run(
            command(language, tmp_path, text),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=500,
            env={
                **os.environ,
                "GOTOOLCHAIN": "local",
                "GO111MODULE": "off",
                "CGO_ENABLED": "0",
            },
        )
    assert done.returncode == 0, done.stderr
    assert PRICE in done.stdout
