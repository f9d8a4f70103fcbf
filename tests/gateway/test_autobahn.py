"""The Autobahn test suite: what RFC 6455 wants of a WebSocket server.

It talks to an echo served by the gateway's own protocol class and options. Groups 9
(limits and speed), 12 and 13 (compression, which is off) do not apply.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send

from gateway.server import bind, create_server
from gateway.settings import GatewaySettings
from tests.conftest import leave_out
from tests.gateway.servers import serving

CASES = 247
NOT_APPLICABLE = ["9.*", "12.*", "13.*"]

# A close frame between two fragments of a message: uvicorn answers the close properly
# and is faulted for the code. It is the same with its own protocol class.
KNOWN_DEVIATIONS = {"7.1.5"}

RUN = """
import site, sys
site.addsitedir(sys.argv[1])
sys.argv = ["wstest", "-m", "fuzzingclient", "-s", sys.argv[2]]
from autobahntestsuite.wstest import run
run()
"""


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Send every message back."""
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({**message, "type": "websocket.send"})


@pytest.mark.timeout(300)
def test_the_autobahn_suite_finds_nothing_new(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Every applicable case is as the standard wants it, but for what is known."""
    environment = Path(sys.prefix)
    stamp = environment / ".autobahn"
    if not stamp.exists():
        # Few machines have the Python 2.7 it needs.
        leave_out("the Autobahn suite, see `make autobahn`")
    settings = GatewaySettings(port=0)
    sock, operators = bind(settings)
    operators.close()
    report, specification = tmp_path / "report", tmp_path / "specification.json"
    server = create_server(echo, settings)
    server.config.lifespan = "off"
    url = f"ws://{settings.host}:{sock.getsockname()[1]}"
    specification.write_text(
        json.dumps(
            {
                "outdir": str(report),
                "servers": [{"agent": "gateway", "url": url}],
                "cases": ["*"],
                "exclude-cases": NOT_APPLICABLE,
                "exclude-agent-cases": {},
            }
        )
    )
    with serving(server, sock):
        python = stamp.read_text().strip()
        folder = str(environment / "autobahn")
        subprocess.run(
            [python, "-W", "ignore", "-c", RUN, folder, str(specification)],
            check=True,
            timeout=200,
            stdout=subprocess.DEVNULL,
        )
    results = json.loads((report / "index.json").read_text())["gateway"]
    assert len(results) == CASES
    failed = {
        case
        for case, result in results.items()
        if {result["behavior"], result["behaviorClose"]} & {"FAILED", "WRONG CODE"}
    }
    assert failed == KNOWN_DEVIATIONS
    assert not caplog.records, "a client's mistakes are not worth a line each"
