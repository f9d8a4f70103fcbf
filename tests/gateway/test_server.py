"""Running the gateway as a process."""

import signal
import socket
import subprocess
import sys

import pytest

from gateway.server import GatewayFailed, run_gateway
from gateway.settings import GatewaySettings
from tests.conftest import PATIENCE, eventually
from tests.gateway.servers import Gateway
from tests.ports import free_port

RUN = """
import sys
from gateway.server import run_gateway
from gateway.settings import GatewaySettings
run_gateway(GatewaySettings(redis_url=sys.argv[1], port=int(sys.argv[2])))
"""

STOP_EARLY = """
import os, signal, sys
from gateway.server import listen, stop_signals_end_quietly
from gateway.settings import GatewaySettings
listening = listen(GatewaySettings(redis_url=sys.argv[1], port=0))
with stop_signals_end_quietly(listening.server):
    os.kill(os.getpid(), signal.SIGTERM)
    listening.run()
print("has ended")
"""


def test_a_port_in_use_is_named_in_one_sentence() -> None:
    """The operator reads which port it is; nothing was started."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        sentence = f"^cannot listen on port {port} of 127.0.0.1: "
        with pytest.raises(GatewayFailed, match=sentence):
            run_gateway(GatewaySettings(port=port))


@pytest.mark.redis
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_signal_ends_it_cleanly(redis_url: str, stop: signal.Signals) -> None:
    """It serves until the signal, closes its streams and returns 0."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, redis_url, str(port)], stdout=subprocess.PIPE
    )
    gateway = Gateway("127.0.0.1", port, None)
    eventually(lambda: _serves(gateway), within_s=30)
    with gateway.stream() as stream:
        process.send_signal(stop)
        assert stream.take("notice")["code"] == "restart"
        assert stream.close_code() == 1012
    output, _ = process.communicate(timeout=30 * PATIENCE)
    assert process.returncode == 0
    assert b"gateway stopped" in output


@pytest.mark.redis
def test_a_stop_signal_is_not_lost_before_it_serves(redis_url: str) -> None:
    """Whoever is told that it is ready may send one before uvicorn listens for it."""
    ended = subprocess.run(
        [sys.executable, "-c", STOP_EARLY, redis_url],
        stdout=subprocess.PIPE,
        timeout=30 * PATIENCE,
        check=True,
    )
    assert b"has ended" in ended.stdout


def _serves(gateway: Gateway) -> bool:
    try:
        return gateway.get("/health/live")[0] == 200
    except OSError:
        return False
