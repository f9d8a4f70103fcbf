"""Several gateways behind the proxies that docs/scaling.md has configurations for."""

import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis
from playwright.sync_api import Page, expect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from tests.conftest import PATIENCE, eventually, skip_or_fail
from tests.e2e.test_other_origin import ASK, FOLLOW, other_host, seen
from tests.gateway.crew import Crew, crew
from tests.gateway.crowd import crowd
from tests.gateway.publisher import Publisher
from tests.gateway.samples import SAMSUNG, make_isins, make_priced_row, make_row
from tests.gateway.servers import Gateway, running_gateway
from tests.paths import ROOT
from tests.ports import free_port

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.redis,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]

PROXIES = ("haproxy", "nginx", "caddy")
CLIENTS = 200
POLLERS = 20
INSTRUMENTS = make_isins(100)
PAGE = (ROOT / "docs" / "scaling.md").read_text("utf-8")

NGINX_FOLDERS = "".join(
    f" {name}_temp_path {name};"
    for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
)


LOG_OF_ASKED = (
    "log_format asked $upstream_addr; access_log asked asked; log_subrequest on;"
)
"""Has a line for each answer, "-" if the cache had it."""

AS_OWNER = "" if os.geteuid() else "user root;"
"""Nobody else may go into a test's folder, where the cache is."""

QUIET_S = 4
"""For how long a proxy of the second test waits: the page's is a minute and more."""


APPENDING = "nginx, appending"
"""nginx as many have it, who do not take the page's configuration."""

REPLACES, APPENDS = "For $remote_addr;", "For $proxy_add_x_forwarded_for;"


PREFIX = "/ticks"

UNDER_PREFIX = {
    "haproxy": [
        (
            "    use_backend any",
            "    http-request redirect location /ticks/ if { path /ticks }\n"
            r"    http-request replace-path ^/ticks/(.*) /\1"
            "\n    use_backend any",
        )
    ],
    "nginx": [
        ("location / {", "location /ticks/ {"),
        ("proxy_pass http://gateways;", "proxy_pass http://gateways/;"),
    ],
    "caddy": [
        (
            "    reverse_proxy",
            "    redir /ticks /ticks/\n    handle_path /ticks/* {\n    reverse_proxy",
        ),
        ("100ms\n    }", "100ms\n    }\n    }"),
    ],
}
"""What the page's table says to write for what, to serve all under ``PREFIX``."""


def configuration(
    proxy: str,
    port: int,
    gateways: list[int],
    *,
    is_hasty: bool = False,
    is_caching: bool = False,
) -> str:
    """Return what the page shows, with other ports; with shorter time-outs if hasty.

    If it is caching, with what the page says of nginx's cache.
    """
    if proxy == APPENDING:
        text = configuration("nginx", port, gateways, is_hasty=is_hasty)
        assert REPLACES in text
        return text.replace(REPLACES, APPENDS)
    found = re.search(rf"```{proxy}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None, f"docs/scaling.md has no configuration of {proxy}"
    text = found[1]
    if is_caching:
        _, path, location = re.findall(r"```nginx\n(.*?)```", PAGE, re.DOTALL)
        text = text.replace("    upstream", f"{path}    upstream", 1)
        text = text.replace("        location /", f"{location}        location /", 1)
    ports = {"8080": port, "8000": gateways[0], "8100": gateways[1]}
    text = re.sub(
        "127.0.0.1:(8080|8000|8100)",
        lambda match: f"127.0.0.1:{ports[match[1]]}",
        text,
    )
    if is_hasty:
        text, changed = re.subn(r"\b(60s|1h)\b", f"{QUIET_S}s", text)
        # Caddy lets a stream be quiet for as long as it likes.
        assert changed or proxy == "caddy"
    return text


@contextmanager
def running_proxy(
    proxy: str,
    folder: Path,
    port: int,
    gateways: list[int],
    *,
    is_hasty: bool = False,
    is_caching: bool = False,
    prefix: str = "",
) -> Iterator[None]:
    """Run a proxy until the block ends."""
    text = configuration(
        proxy, port, gateways, is_hasty=is_hasty, is_caching=is_caching
    )
    for old, new in UNDER_PREFIX[proxy] if prefix else ():
        assert text.count(old) == 1
        text = text.replace(old, new)
    proxy = proxy.partition(",")[0]
    program = shutil.which(proxy, path="/usr/sbin:/usr/local/bin:/usr/bin")
    if program is None:
        skip_or_fail(f"there is no {proxy} here")
    assert program is not None
    file = folder / f"{proxy}.conf"
    if proxy == "nginx":
        log = LOG_OF_ASKED if is_caching else "access_log off;"
        text = text.replace("http {", f"http {{ {log}{NGINX_FOLDERS}", 1)
        extra = ["-p", str(folder), "-e", str(folder / "nginx.log"), "-c", str(file)]
        extra += ["-g", f"daemon off; pid {folder}/nginx.pid; {AS_OWNER}"]
    elif proxy == "caddy":
        extra = ["run", "--config", str(file), "--adapter", "caddyfile"]
    else:
        extra = ["-db", "-f", str(file)]
    file.write_text(text)
    # Caddy keeps files at home.
    process = subprocess.Popen([program, *extra], env={"HOME": str(folder)})
    try:
        eventually(lambda: answers(port, prefix))
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        finally:
            process.kill()
            process.wait()


def answers(port: int, prefix: str = "") -> bool:
    """Say whether a gateway answers through the proxy."""
    try:
        status, _ = Gateway("127.0.0.1", port, None).get(f"{prefix}/health/live")
        return status == 200
    except OSError:
        return False


@pytest.mark.parametrize("proxy", PROXIES)
def test_clients_go_from_gateway_to_gateway_through_a_proxy(
    proxy: str, client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    """One is killed, begins again, the other is drained: no price is wrong."""
    publisher = Publisher(client)
    publisher.publish(*(make_priced_row(isin) for isin in INSTRUMENTS))
    port, *ports = (free_port() for _ in range(3))

    def gateway(number: int) -> Crew:
        return stack.enter_context(
            crew(redis_url, tmp_path, workers=1, port=ports[number])
        )

    def publish() -> None:
        while not is_over.wait(0.5):
            seq = publisher.offset + 1
            publisher.publish(*(make_priced_row(isin, seq=seq) for isin in INSTRUMENTS))

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
        clients.connect(CLIENTS, INSTRUMENTS, 10)
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
        last = publisher.publish(
            *(make_priced_row(isin, seq=1_000) for isin in INSTRUMENTS)
        )
        clients.gather(last.offset, CLIENTS)
        assert clients.faults() == []


@pytest.mark.parametrize("trusted", ["127.0.0.1", "*"])
def test_a_proxy_hides_no_page_and_no_address_and_cuts_no_quiet_stream(
    trusted: str,
    client: redis.Redis,
    redis_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rules about strangers hold behind each, whatever they say of themselves."""
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", trusted)
    Publisher(client).publish(make_priced_row(INSTRUMENTS[0]))
    port = free_port()
    rules = {"heartbeat_ms": 500, "max_clients_per_address": 1}
    with ExitStack() as stack:
        only = stack.enter_context(
            crew(redis_url, tmp_path, workers=1, port=port, **rules)
        )
        streams = []
        for number, proxy in enumerate((*PROXIES, APPENDING), 1):
            # Nobody is at the other address.
            before, nobody = free_port(), free_port()
            folder = tmp_path / str(number)
            folder.mkdir()
            stack.enter_context(
                running_proxy(proxy, folder, before, [port, nobody], is_hasty=True)
            )
            # It knows by now who is not there.
            eventually(lambda at=before: all(answers(at) for _ in range(8)))  # type: ignore[misc]
            streams.append(stack.enter_context(check_strangers(before, number)))
        quiet_until = time.monotonic() + 1.5 * QUIET_S
        kinds = set()
        while time.monotonic() < quiet_until:
            kinds |= {received(stream)["type"] for stream in streams}
        assert "heartbeat" in kinds
        eventually(lambda: only.gateway.health()["clients"] == len(streams))


@pytest.mark.parametrize("proxy", [*PROXIES, APPENDING])
def test_who_is_refused_too_often_delays_nobody_else_of_his_proxy(
    proxy: str, redis_url: str, tmp_path: Path
) -> None:
    """One asks again and again for what is not there, as a page without an icon."""
    before, port, nobody = (free_port() for _ in range(3))
    rules = {"refusals_per_second": 1}
    with ExitStack() as stack:
        only = stack.enter_context(
            crew(redis_url, tmp_path, workers=1, port=port, **rules)
        )
        stack.enter_context(running_proxy(proxy, tmp_path, before, [port, nobody]))

        def is_late() -> int:
            assert status(before, "127.0.1.9", "/favicon.ico") == 404
            return only.gateway.count("connections_read_late")

        # HAProxy sends nobody on before its first check of the gateway.
        eventually(lambda: status(before, "127.0.1.8", "/health/live") == 200)
        late = eventually(is_late)
        for host in range(10, 30):
            assert status(before, f"127.0.1.{host}", "/health/live") == 200
        assert only.gateway.count("connections_read_late") == late
        # His budget has filled up a little meanwhile.
        eventually(lambda: is_late() > late)


def test_thousands_of_pollers_behind_a_cache_cost_one(
    client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    """10,000 questions within a few windows; none is answered with an older window."""
    publisher = Publisher(client)
    publisher.publish(*(make_priced_row(isin) for isin in INSTRUMENTS[:9]))
    before, port, nobody = (free_port() for _ in range(3))
    allowed = "http://page.example"
    with ExitStack() as stack:
        stack.enter_context(
            crew(redis_url, tmp_path, workers=1, port=port, allowed_origins=allowed)
        )
        stack.enter_context(
            running_proxy("nginx", tmp_path, before, [port, nobody], is_caching=True)
        )
        began_s = time.monotonic()
        with ThreadPoolExecutor(POLLERS) as pool:
            polled = [
                pool.submit(poll, before, 10_000 // POLLERS) for _ in range(POLLERS)
            ]
            while not all(one.done() for one in polled):
                publisher.publish(make_priced_row(SAMSUNG, seq=publisher.offset + 1))
                time.sleep(0.5)
        for one in polled:
            assert one.result() == sorted(one.result())
        took_s = time.monotonic() - began_s
        answered = (tmp_path / "asked").read_text().split()
        assert len(answered) > 10_000
        assert len(answered) - answered.count("-") <= 2 + 2 * took_s
        eventually(lambda: poll(before, 1) == [publisher.offset])
        for origin in (allowed, ""):
            headers = {"Origin": origin} if origin else {}
            connection = HTTPConnection("127.0.0.1", before, 20 * PATIENCE)
            connection.request("GET", "/v1/quotes", headers=headers)
            with connection.getresponse() as answer:
                readable = answer.getheader("Access-Control-Allow-Origin")
            assert readable == (origin or None)
            connection.close()


def poll(port: int, times: int) -> list[int]:
    """Ask for all quotes again and again; return the offset of each answer."""
    connection = HTTPConnection("127.0.0.1", port, 20 * PATIENCE)
    offsets = []
    for _ in range(times):
        connection.request("GET", "/v1/quotes")
        with connection.getresponse() as answer:
            offsets.append(int(json.loads(answer.read())["offset"]))
    connection.close()
    return offsets


def status(port: int, source: str, path: str) -> int:
    """Ask through a proxy, from an address of this machine, as another one."""
    connection = HTTPConnection("127.0.0.1", port, 20 * PATIENCE, (source, 0))
    try:
        connection.request("GET", path, headers={"X-Forwarded-For": "203.0.113.7"})
        return connection.getresponse().status
    finally:
        connection.close()


@contextmanager
def check_strangers(port: int, network: int) -> Iterator[ClientConnection]:
    """Open a stream through a proxy, and have others try theirs meanwhile."""
    address = f"127.0.{network}.9"
    with opened(port, address, origin=f"http://127.0.0.1:{port}") as stream:
        assert received(stream)["type"] == "welcome"
        with pytest.raises(InvalidStatus) as refused:
            opened(port, f"127.0.{network}.10", origin="http://elsewhere.example")
        assert refused.value.response.status_code == 403
        # Who says that he is another one is still the same, and one too many.
        with opened(port, address, said="203.0.113.7") as second:
            assert close_code(second) == 1013
        with opened(port, f"127.0.{network}.11") as third:
            assert received(third)["type"] == "welcome"
        yield stream


def opened(
    port: int, source: str, *, origin: str | None = None, said: str | None = None
) -> ClientConnection:
    """Open a stream from an address of this machine."""
    return connect(
        f"ws://127.0.0.1:{port}/v1/stream",
        origin=None if origin is None else Origin(origin),
        additional_headers={} if said is None else {"X-Forwarded-For": said},
        source_address=(source, 0),
        proxy=None,
    )


def received(stream: ClientConnection) -> dict[str, Any]:
    """Return the next message; one must come."""
    message: dict[str, Any] = json.loads(stream.recv(timeout=20 * PATIENCE))
    return message


def close_code(stream: ClientConnection) -> int:
    """Return the code with which a stream is closed."""
    with pytest.raises(ConnectionClosed) as closed:
        list(stream)
    assert closed.value.rcvd is not None
    return closed.value.rcvd.code


@pytest.mark.browser
@pytest.mark.parametrize("proxy", PROXIES)
def test_pages_work_under_a_path(
    proxy: str, page: Page, client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    """The board, an instrument with its chart, another page: none is elsewhere."""
    paths: list[str] = []
    page.on("request", lambda request: paths.append(urlsplit(request.url).path))
    page.on("websocket", lambda socket: paths.append(urlsplit(socket.url).path))
    publisher, port = Publisher(client), free_port()
    publisher.publish(make_row(SAMSUNG, "71900", 1))
    with (
        running_gateway(redis_url, firehose_public=True, heartbeat_ms=500) as gateway,
        running_proxy(proxy, tmp_path, port, [gateway.port] * 2, prefix=PREFIX),
    ):
        page.goto(f"http://127.0.0.1:{port}{PREFIX}")
        expect(page).to_have_url(re.compile(f"{PREFIX}/"))
        publisher.publish(make_row(SAMSUNG, "72000", 2))
        expect(page.locator("body")).to_have_attribute("data-state", "live")
        row = page.locator(f"#row-{SAMSUNG}")
        expect(row.locator(".price")).to_contain_text("72,000")
        row.locator(".price").click()
        expect(page.locator(".detail")).to_be_visible()
        page.get_by_role("link", name="Firehose").click()
        expect(page).to_have_url(re.compile(f"{PREFIX}/firehose"))
        expect(page.locator("#shell")).to_contain_text("Firehose")
        page.get_by_role("link", name="Market").click()
        expect(row.locator(".price")).to_contain_text("72,000")
    assert {path for path in paths if not path.startswith(PREFIX)} == set()
    asked = {f"{PREFIX}/v1/stream", f"{PREFIX}/v1/firehose"}
    asked |= {f"{PREFIX}/v1/instruments/{SAMSUNG}/windows", f"{PREFIX}/static/board.js"}
    assert asked <= set(paths)


@pytest.mark.browser
@pytest.mark.parametrize("proxy", PROXIES)
def test_pages_of_other_hosts_work_with_a_path(
    proxy: str, page: Page, client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    """The client, the stream and REST are under it; who is not listed is told so."""
    publisher, port = Publisher(client), free_port()
    publisher.publish(make_row(SAMSUNG, "71900", 1))
    address = f"127.0.0.1:{port}{PREFIX}"
    with ExitStack() as stack:
        # Behind the proxy one page is listed, and another is not.
        listed = free_port()
        gateway = stack.enter_context(
            running_gateway(redis_url, allowed_origins=f"http://127.0.0.1:{listed}")
        )
        gateway.wait_until(publisher.offset)
        ports = [gateway.port] * 2
        stack.enter_context(running_proxy(proxy, tmp_path, port, ports, prefix=PREFIX))
        page.goto(stack.enter_context(other_host(gateway, listed)))
        page.evaluate(FOLLOW, [address, f"http://{address}"])
        eventually(lambda: seen(page)["prices"] == {SAMSUNG: "71900"})
        assert page.evaluate(ASK, address)[::2] == [200, 1]
        origin = stack.enter_context(other_host(gateway))
        page.goto(origin)
        page.evaluate(FOLLOW, [address, f"http://{address}"])
        words = f"origin, {origin}, in TICKTHROTTLE_ALLOWED_ORIGINS"
        eventually(lambda: any(words in text for text in seen(page)["texts"]))
