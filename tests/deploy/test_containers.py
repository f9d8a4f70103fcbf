"""Images are built and run as deploy/compose.yaml has them; containers are killed."""

import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, expect

from tests.conftest import eventually
from tests.deploy.containers import (
    BASE,
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

KILLED = ("gateway-1", "throttle-1", "feed", "proxy", "valkey")


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

    def is_well() -> bool:
        try:
            podman("healthcheck", "run", containers.name(service))
        except AssertionError:
            return False
        return True

    eventually(is_well, 60)


def test_prometheus_sees_every_process(containers: Containers) -> None:
    """With the operators' token, which the containers have made themselves.

    Every one that runs: the analytics job does not.
    """
    url = f"http://127.0.0.1:{containers.ports['PROMETHEUS']}/api/v1/targets"

    def all_are_up() -> bool:
        with urlopen(url) as answer:
            targets = json.load(answer)["data"]["activeTargets"]
        up = [target["scrapePool"] for target in targets if target["health"] == "up"]
        return len(up) == 6 and "tickthrottle-archive" in up

    eventually(all_are_up, 60)


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


def test_a_gateway_shows_what_the_archive_has_stored(containers: Containers) -> None:
    """Written into a volume by the one user, read from it by the other."""
    port = containers.ports["GATEWAY_1"]

    def is_stored() -> bool:
        with urlopen(f"http://127.0.0.1:{port}/v1/quotes") as answer:
            quote = json.load(answer)["data"][0]
        url = f"http://127.0.0.1:{port}/v1/quotes/{quote['isin']}/history?limit=1"
        with urlopen(url) as answer:
            return bool(json.load(answer)["data"])

    eventually(is_stored, 60)


@pytest.mark.parametrize("target", ["all", "gateway"])
def test_an_image_runs_as_nobody_and_is_as_small_as_told(
    target: str, images: None
) -> None:
    """No root, signals go through tini, and docs/containers.md tells the size."""
    config = about(target)["Config"]
    assert isinstance(config, dict)
    assert config["User"] == "10001:10001"
    assert config["Entrypoint"] == ["/usr/bin/tini", "--", "tickthrottle"]
    page = (ROOT / "docs" / "containers.md").read_text("utf-8")
    told = re.search(rf"^\| `{target}` .*\| ([0-9.]+) GB beyond the base", page, re.M)
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


def test_a_container_ends_at_once_when_told(images: None, tmp_path: Path) -> None:
    """SIGTERM goes through: nothing waits to be killed. Until then it is well.

    By the command that docs/containers.md has for podman.
    """
    name = f"tickthrottle-stop-{tmp_path.name}"
    page = (ROOT / "docs" / "containers.md").read_text("utf-8")
    [asked] = re.findall(r"--health-cmd '(.+)' \\\n", page)
    port = free_port()
    podman(
        *("run", "--detach", "--name", name, "--read-only", "--cap-drop", "ALL"),
        *("--env", f"TICKTHROTTLE_PORT={port}"),
        *("--env", "TICKTHROTTLE_OPERATORS_PORT=0"),
        *("--health-cmd", asked.replace("8000", str(port))),
        image("gateway"),
    )
    try:
        eventually(lambda: "gateway listening" in podman("logs", name), 60)
        podman("healthcheck", "run", name)
        podman("stop", "--time", "60", name)
        state = json.loads(podman("inspect", "--format", "{{json .State}}", name))
        assert state["ExitCode"] == 0
        assert "gateway stopped" in podman("logs", name)
    finally:
        podman("rm", "--force", name)
