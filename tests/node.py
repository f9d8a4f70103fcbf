"""How tests run a module that uses a WebSocket under Node."""

import shutil
import subprocess

from tests.conftest import leave_out


def node_command() -> list[str]:
    """Return what runs a module; leave the test out where Node is missing or old."""
    if shutil.which("node") is None:
        leave_out("what runs under node")
    asked = ["node", "-p", "parseInt(process.version.slice(1))"]
    version = int(subprocess.check_output(asked, text=True))
    if version < 20:
        leave_out("what needs a WebSocket, which node has from 20 on")
    return ["node", *(["--experimental-websocket"] if version < 22 else [])]
