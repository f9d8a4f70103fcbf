"""Images are built and run as deploy/compose.yaml has them; containers are killed."""

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from ssl import create_default_context
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, expect

from tests.conftest import eventually
from tests.deploy.containers import (
    BASE,
    PAGE,
    Containers,
    about,
    image,
    images,
    podman,
    run,
    running_containers,
    size_of,
)
from tests.deploy.follower import following, wait_for_windows
from tests.doc_pages import commands, text_of
from tests.e2e.conftest import browser
from tests.paths import ROOT
from tests.ports import free_port

__all__ = ["browser", "images"]

pytestmark = [
    pytest.mark.container,
    pytest.mark.e2e,
    # The first test builds the images and starts the services.
    pytest.mark.timeout(500),
]

KILLED = ("gateway-1", "throttle-1", "feed", "archive", "proxy", "valkey")
FOREIGN = "US0378331005"
"""An instrument that the feed does not have."""

DASHBOARD = ROOT / "deploy" / "grafana" / "dashboard.json"


@pytest.fixture(scope="module")
def containers(
    images: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Containers]:
    """The services, running; where a test fails, what they said."""
    with (
        pytest.MonkeyPatch.context() as patch,
        running_containers(tmp_path_factory.mktemp("containers")) as running,
    ):
        patch.setenv("SSL_CERT_FILE", str(running.authority()))
        yield running


def stream(containers: Containers) -> str:
    """Return the stream's address at the proxy."""
    return f"wss://localhost:{containers.ports['HTTPS']}/v1/stream"


def test_a_price_arrives_over_tls(containers: Containers) -> None:
    """From the feed's container to a client of the proxy, which checks its name."""
    with following(stream(containers)) as follower:
        wait_for_windows(follower)
    assert follower.faults == []


@pytest.mark.browser
def test_a_browser_shows_a_price_over_tls(
    containers: Containers, browser: Browser
) -> None:
    """The board at the proxy's address is live, and has rows with prices."""
    with following(stream(containers)) as follower:
        wait_for_windows(follower)
    # It has a store of authorities of its own.
    page = browser.new_page(ignore_https_errors=True)
    try:
        page.goto(f"https://localhost:{containers.ports['HTTPS']}/")
        expect(page.locator("tbody tr td").filter(has_text="00").first).to_be_visible()
    finally:
        page.close()


@pytest.mark.parametrize("service", ["gateway-1", "feed", "throttle-1", "archive"])
def test_a_container_says_that_it_is_well(service: str, containers: Containers) -> None:
    """By the command in compose.yaml, which the image can run."""
    eventually(lambda: is_well(containers.name(service)), 60)


def test_trades_of_ones_own_go_in_at_the_published_port(
    containers: Containers,
) -> None:
    """From this machine, by the address that the page names."""
    [line] = commands(PAGE, "export REDIS_URL=")
    address = line.partition("=")[2]
    shown = re.search(r"\$\(docker compose .* exec -T (\w+) (.*)\)", address)
    assert shown is not None
    password = containers.execute(shown[1], *shlex.split(shown[2]))
    url = address.replace(shown[0], password)
    url = url.replace(":6379", f":{containers.ports['REDIS']}")
    program = Path(sys.executable).with_name("tickthrottle")
    with following(stream(containers)) as follower:
        done = subprocess.run(
            [program, "ingest", "-", "--stamp", "now"],
            input=f"isin,price,size\n{FOREIGN},71900,10\n",
            env={**os.environ, "REDIS_URL": url},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        eventually(lambda: FOREIGN in follower.newest, 60)
    assert follower.faults == []


@pytest.mark.parametrize("service", KILLED)
def test_the_stream_is_right_after_a_container_was_killed(
    service: str, containers: Containers, record_property: Any
) -> None:
    """It runs again by itself, clients go on, and the books balance to the trade."""
    with following(stream(containers)) as follower:
        wait_for_windows(follower)
        began_s = time.monotonic()
        containers.kill(service)
        wait_for_windows(follower)
        record_property("again_after_s", round(time.monotonic() - began_s, 1))
    assert follower.faults == []
    containers.execute("throttle-1", "tickthrottle", "ledger")
    containers.execute("throttle-1", "tickthrottle", "rebuild")
    if service == "archive":
        began_at = windows_kept(containers)
        eventually(lambda: windows_kept(containers) > began_at, 60)


def windows_kept(containers: Containers) -> int:
    """Return how many windows the archive has stored; none may be missing."""
    show = ("tickthrottle", "archive", "--show", "--json")
    said = json.loads(containers.execute("archive", *show))
    assert said["gaps"] == []
    return sum(day["windows"] for day in said["days"])


def test_a_gateway_shows_what_the_archive_has_stored(containers: Containers) -> None:
    """Written into a volume by the one user, read from it by the other."""
    url = f"https://localhost:{containers.ports['HTTPS']}/v1/quotes"

    def is_stored() -> bool:
        quote = get(url)[0]
        return bool(get(f"{url}/{quote['isin']}/history?limit=1"))

    eventually(is_stored, 60)


def test_the_analytics_job_goes_on_after_it_was_killed(
    containers: Containers, record_property: Any
) -> None:
    """From what its volume holds: its books balance, and more trades are in them."""
    containers.start("analytics")
    began_s = time.monotonic()
    counted = wait_for_bars(containers, 0)
    record_property("first_bars_after_s", round(time.monotonic() - began_s, 1))
    began_s = time.monotonic()
    containers.kill("analytics")
    wait_for_bars(containers, counted)
    record_property("again_after_s", round(time.monotonic() - began_s, 1))


def wait_for_bars(containers: Containers, counted: int) -> int:
    """Wait until more trades are in bars than so many; the books must balance."""

    def more() -> int:
        ask = "hgetall tt:analytics:bars:ledger"
        client = 'redis-cli --no-auth-warning -a "$(cat /run/redis/default)" --raw'
        words = containers.execute("valkey", "sh", "-c", f"{client} {ask}").split()
        of: dict[str, int] = {}
        for key, value in zip(words[::2], words[1::2], strict=True):
            outcome = key.partition(":")[2].partition(":")[0]
            if outcome and value.isdigit():
                of[outcome] = of.get(outcome, 0) + int(value)
        if of.get("counted", 0) <= counted:
            return 0
        ends = ("counted", "too_late", "refused", "skipped")
        assert of["read"] + of.get("extra", 0) == sum(of.get(end, 0) for end in ends)
        return of["counted"]

    return eventually(more, 120)


def test_prometheus_sees_every_process(containers: Containers) -> None:
    """With the operators' token, which the containers have made themselves."""

    def all_are_up() -> bool:
        targets = ask_prometheus(containers, "targets")["activeTargets"]
        return [target["health"] for target in targets] == ["up"] * 7

    eventually(all_are_up, 60)


def test_prometheus_answers_every_query_of_the_dashboard(
    containers: Containers,
) -> None:
    """Each panel shows something, but those of what should not happen."""
    dashboard = json.loads(DASHBOARD.read_text("utf-8"))
    queries = {
        f"{panel['title']}: {target['expr']}": of_everything(target["expr"])
        for panel in dashboard["panels"]
        for target in panel.get("targets", ())
    }
    assert len(queries) > 40

    def silent() -> list[str]:
        return [
            name
            for name, query in queries.items()
            if not ask_prometheus(containers, f"query?{urlencode({'query': query})}")[
                "result"
            ]
        ]

    eventually(lambda: all(is_of_faults(name) for name in silent()), 60)


def of_everything(query: str) -> str:
    """Return a panel's query as with "All" chosen in each list of the dashboard."""
    return query.replace("$instance", ".*").replace("$namespace", ".*")


def is_of_faults(name: str) -> bool:
    """Tell whether a panel's query may find nothing: all is well then."""
    may_be_silent = ("Why not ready", "What is wrong")
    return name.endswith("> 0") or name.startswith(may_be_silent)


def ask_prometheus(containers: Containers, what: str) -> dict[str, Any]:
    """Ask Prometheus' API; it must take the question."""
    url = f"http://127.0.0.1:{containers.ports['PROMETHEUS']}/api/v1/{what}"
    with urlopen(url) as answer:
        said = json.load(answer)
    assert said["status"] == "success"
    data: dict[str, Any] = said["data"]
    return data


def get(url: str) -> Any:
    """Return the data of an answer over TLS, checked by the proxy's authority."""
    with urlopen(url, context=create_default_context()) as answer:
        return json.load(answer)["data"]


@pytest.mark.parametrize("target", ["all", "gateway"])
def test_an_image_runs_as_nobody_and_is_as_small_as_told(
    target: str, images: None
) -> None:
    """No root, signals go through tini, and docs/containers.md tells the size."""
    config = about(target)["Config"]
    assert isinstance(config, dict)
    assert config["User"] == "10001:10001"
    assert config["Entrypoint"] == ["/usr/bin/tini", "--", "tickthrottle"]
    told = re.search(
        rf"^\| `{target}` .*\| ([0-9.]+) GB beyond the base", text_of(PAGE), re.M
    )
    assert told is not None
    beyond = size_of(image(target)) - size_of(BASE)
    assert beyond / 1e9 == pytest.approx(float(told[1]), 0.2)


def test_the_images_pass_the_trial_of_a_release(images: None) -> None:
    """As `make release` tries them."""
    run(sys.executable, "packaging/try_images.py", image("x").removesuffix(":x"))


def test_the_image_for_gateways_has_no_spark(images: None) -> None:
    """A command that needs it says what to install instead."""
    with pytest.raises(AssertionError, match=r"pip install 'tickthrottle\[spark\]'"):
        podman("run", "--rm", image("gateway"), "throttle")


def is_well(name: str) -> bool:
    """Ask a container for its health, by the command of its image."""
    try:
        podman("healthcheck", "run", name)
    except AssertionError:
        return False
    return True


def test_a_container_ends_at_once_when_told(images: None, tmp_path: Path) -> None:
    """SIGTERM goes through: nothing waits to be killed. Until then it is well.

    By the command that docs/containers.md has for podman, and shut in.
    """
    [line] = commands(PAGE, "podman run --detach")
    with run_by_the_page(line, tmp_path) as (name, port):
        eventually(lambda: "gateway listening" in podman("logs", name), 60)
        eventually(lambda: is_well(name), 60)
        assert is_answered(f"http://127.0.0.1:{port}/health/live")
        podman("stop", "--time", "60", name)
        state = json.loads(podman("inspect", "--format", "{{json .State}}", name))
        assert state["ExitCode"] == 0
        assert "gateway stopped" in podman("logs", name)


def test_one_image_is_a_live_board(images: None, tmp_path: Path) -> None:
    """The page's one command brings prices to the port that it names."""
    [line] = commands(PAGE, "podman run --rm")
    with run_by_the_page(line, tmp_path) as (name, port):
        ready = f"http://127.0.0.1:{port}/health/ready"
        try:
            eventually(lambda: is_answered(ready), 120)
        except AssertionError:
            pytest.fail(podman("logs", "--tail", "20", name))
        with urlopen(f"http://127.0.0.1:{port}/v1/quotes") as answer:
            assert json.load(answer)["data"]


@contextmanager
def run_by_the_page(line: str, folder: Path) -> Iterator[tuple[str, int]]:
    """Run a container by a line of the page, shut in; yield its name and its port."""
    name, port = f"tickthrottle-test-{folder.name}", free_port()
    program, run_, *words = shlex.split(line)
    tag = next(at for at, word in enumerate(words) if word.startswith("tickthrottle:"))
    words[tag] = words[tag].replace("tickthrottle:", image(""))
    for option in ("--name", "--rm", "--detach", "--publish"):
        if option in words:
            at = words.index(option)
            del words[at : at + 1 + (option in ("--name", "--publish"))]
    shut_in = ("--read-only", "--cap-drop", "ALL", "--tmpfs", "/tmp")
    where = ("--network", "podman", "--publish", f"127.0.0.1:{port}:8000")
    run(program, run_, "--detach", "--name", name, *where, *shut_in, *words)
    try:
        yield name, port
    finally:
        podman("rm", "--force", "--time", "0", name)


def is_answered(url: str) -> bool:
    """Tell whether an address answers with 200."""
    try:
        with urlopen(url, timeout=5):
            return True
    except OSError:
        return False
