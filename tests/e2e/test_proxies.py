"""Several gateways behind the proxies that docs/scaling.md has configurations for."""

import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import redis

from tests.conftest import eventually, skip_or_fail
from tests.gateway.crew import Crew, crew
from tests.gateway.crowd import crowd
from tests.gateway.publisher import Publisher
from tests.gateway.samples import make_isins, make_priced_row
from tests.gateway.servers import Gateway
from tests.paths import ROOT
from tests.ports import free_port

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.redis,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]

CLIENTS = 200
ISSUES = make_isins(100)
PAGE = (ROOT / "docs" / "scaling.md").read_text("utf-8")

NGINX_FOLDERS = "".join(
    f" {name}_temp_path {name};"
    for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
)


def configuration(proxy: str, port: int, gateways: list[int]) -> str:
    """Return what the page shows, with other ports."""
    found = re.search(rf"```{proxy}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None, f"docs/scaling.md has no configuration of {proxy}"
    ports = {"8080": port, "8000": gateways[0], "8100": gateways[1]}
    return re.sub(
        "127.0.0.1:(8080|8000|8100)",
        lambda match: f"127.0.0.1:{ports[match[1]]}",
        found[1],
    )


@contextmanager
def running_proxy(
    proxy: str, folder: Path, port: int, gateways: list[int]
) -> Iterator[None]:
    """Run a proxy until the block ends."""
    program = shutil.which(proxy, path="/usr/sbin:/usr/local/bin:/usr/bin")
    if program is None:
        skip_or_fail(f"there is no {proxy} here")
    assert program is not None
    text = configuration(proxy, port, gateways)
    file = folder / f"{proxy}.conf"
    if proxy == "nginx":
        text = text.replace("http {", f"http {{ access_log off;{NGINX_FOLDERS}", 1)
        extra = ["-p", str(folder), "-e", str(folder / "nginx.log"), "-c", str(file)]
        extra += ["-g", f"daemon off; pid {folder}/nginx.pid;"]
    elif proxy == "caddy":
        extra = ["run", "--config", str(file), "--adapter", "caddyfile"]
    else:
        extra = ["-db", "-f", str(file)]
    file.write_text(text)
    # Caddy keeps files at home.
    process = subprocess.Popen([program, *extra], env={"HOME": str(folder)})
    try:
        eventually(lambda: answers(port))
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        finally:
            process.kill()
            process.wait()


def answers(port: int) -> bool:
    """Say whether a gateway answers through the proxy."""
    try:
        return Gateway("127.0.0.1", port, None).get("/health/live")[0] == 200
    except OSError:
        return False


@pytest.mark.parametrize("proxy", ["haproxy", "nginx", "caddy"])
def test_clients_go_from_gateway_to_gateway_through_a_proxy(
    proxy: str, client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    """One is killed, begins again, the other is drained: no price is wrong."""
    publisher = Publisher(client)
    publisher.publish(*(make_priced_row(isin) for isin in ISSUES))
    port, *ports = (free_port() for _ in range(3))

    def gateway(number: int) -> Crew:
        return stack.enter_context(
            crew(redis_url, tmp_path, workers=1, port=ports[number])
        )

    def publish() -> None:
        while not is_over.wait(0.5):
            seq = publisher.offset + 1
            publisher.publish(*(make_priced_row(isin, seq=seq) for isin in ISSUES))

    is_over = threading.Event()
    publishing = threading.Thread(target=publish)
    publishing.start()
    with ExitStack() as stack:
        stack.callback(publishing.join)
        stack.callback(is_over.set)
        one, other = gateway(0), gateway(1)
        # A proxy that has just begun takes one bad answer for an end.
        eventually(lambda: one.gateway.health()["ready"])
        eventually(lambda: other.gateway.health()["ready"])
        stack.enter_context(running_proxy(proxy, tmp_path, port, ports))
        clients = stack.enter_context(crowd(port, is_checking=True))
        clients.connect(CLIENTS, ISSUES, 10)
        clients.come_back()
        served = [c.gateway.health()["clients"] for c in (one, other)]
        assert sum(served) == CLIENTS
        assert min(served) > CLIENTS / 4, served
        time.sleep(2)
        one.process.kill()
        eventually(lambda: other.gateway.health()["clients"] == CLIENTS, 60)
        assert clients.returns() == served[0]
        again = gateway(0)
        time.sleep(2)
        other.process.send_signal(signal.SIGTERM)
        eventually(lambda: again.gateway.health()["clients"] == CLIENTS, 60)
        assert clients.returns() == served[0] + CLIENTS
        assert clients.close_codes() == {1012: CLIENTS}
        is_over.set()
        publishing.join()
        last = publisher.publish(*(make_priced_row(isin, seq=1_000) for isin in ISSUES))
        clients.gather(last.offset, CLIENTS)
        assert clients.faults() == []
