"""A relay that follows a gateway through a proxy with TLS, as across regions."""

import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis

from tests.certificates import Certificates, make_certificates
from tests.conftest import eventually, skip_or_fail
from tests.e2e.gateway_node import GatewayNode
from tests.e2e.processes import running, running_command
from tests.e2e.test_relays import following
from tests.gateway.publisher import Publisher
from tests.gateway.samples import make_row
from tests.ports import free_port

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.redis,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]


def configuration(port: int, files: Certificates, upstream: int) -> str:
    """Return that of a Caddy that has a certificate and passes all on."""
    return f"""
{{
    admin off
    auto_https disable_redirects
    skip_install_trust
}}
https://127.0.0.1:{port} {{
    tls {files.server} {files.key}
    reverse_proxy 127.0.0.1:{upstream}
}}
"""


def test_a_relay_of_two_workers_follows_over_tls(
    client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    """Who knows the authority has every window; who does not says why there is none."""
    caddy = shutil.which("caddy")
    if caddy is None:
        skip_or_fail("there is no caddy here")
    files, port = make_certificates(tmp_path), free_port()
    publisher = Publisher(client)
    publisher.publish(make_row())
    with ExitStack() as stack:
        root = GatewayNode(stack, tmp_path, REDIS_URL=redis_url)
        written = tmp_path / "Caddyfile"
        written.write_text(configuration(port, files, root.port), "utf-8")
        command = [str(caddy), "run", "--config", str(written), "--adapter=caddyfile"]
        # Caddy keeps files at home.
        front = running_command(tmp_path, "caddy", command, HOME=str(tmp_path))
        stack.enter_context(front)
        url = f"wss://127.0.0.1:{port}"
        follow = {"TICKTHROTTLE_FOLLOW": url, "SSL_CERT_FILE": str(files.authority)}
        relay = GatewayNode(stack, tmp_path, TICKTHROTTLE_WORKERS="2", **follow)
        root.begin()
        eventually(root.is_live, 60)
        relay.begin()
        eventually(relay.is_live, 60)
        # Each connection comes to one of the two workers.
        clients = stack.enter_context(following([relay] * 6))
        eventually(lambda: all(client.offset for client in clients), 60)
        for seq in range(2, 7):
            publisher.publish(make_row(seq=seq))
        eventually(lambda: all(c.offset == publisher.offset for c in clients), 60)
        assert [client.problems for client in clients] == [[]] * len(clients)
        ports = "--port", str(free_port()), "--follow", url
        operators = {"TICKTHROTTLE_OPERATORS_PORT": str(free_port())}
        stranger = stack.enter_context(
            running(tmp_path, "gateway", *ports, **operators)
        )
        stranger.wait_for("certificate verify failed")
