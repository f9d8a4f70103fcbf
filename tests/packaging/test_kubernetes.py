"""The pods of deploy/kubernetes/trial, for real, and gateways replaced under load."""

import json
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.request import urlopen

import pytest

from tests.conftest import eventually
from tests.deploy.containers import images
from tests.deploy.follower import Follower, following, wait_for_windows
from tests.deploy.pods import (
    FOLDER,
    PODS,
    Pods,
    commands,
    rendered,
    running_pods,
    secrets,
)
from tests.e2e.test_proxies import running_proxy
from tests.gateway.crowd import crowd
from tests.ports import free_port

__all__ = ["images"]

pytestmark = [
    pytest.mark.container,
    pytest.mark.e2e,
    # The first test may build the images.
    pytest.mark.timeout(500),
]

CLIENTS = 200
KEYS_EACH = 30


@pytest.fixture(scope="module")
def pods(images: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pods]:
    """The pods, running, with the Secret that the page's command makes."""
    manifests = rendered(FOLDER / "trial")
    manifests += [m for m in secrets() if m["metadata"]["namespace"] == "tickthrottle"]
    folder = tmp_path_factory.mktemp("pods")
    with running_pods(manifests, folder) as pods:
        yield pods


@pytest.fixture(scope="module")
def port(pods: Pods, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The one address of both gateways, in place of their Service."""
    port = free_port()
    gateways = [pods.port(f"gateway-{number}", "http") for number in (1, 2)]
    for number in (1, 2):
        pods.wait(f"gateway-{number}", 180)
    folder = tmp_path_factory.mktemp("proxy")
    with running_proxy("haproxy", folder, port, gateways):
        yield port


def published(port: int, first: int) -> dict[int, int]:
    """Return how many rows each window has, by its offset, from one of them on."""
    rows: dict[int, int] = {}
    url = f"http://127.0.0.1:{port}/v1/windows?rows=false"
    page = ""
    while min(rows, default=first + 1) > first:
        with urlopen(url + page, timeout=30) as answer:
            windows = json.load(answer)["data"]
        rows |= {window["offset"]: window["count"] for window in windows}
        page = f"&to={windows[-1]['window'] - 1}"
    return rows


def lost(follower: Follower, port: int) -> set[int]:
    """Return the windows with rows of which a client got nothing."""
    if not follower.skipped:
        return set()
    rows = published(port, min(follower.skipped))
    return {offset for offset in follower.skipped if rows[offset]}


def test_a_price_arrives_from_pod_to_pod(pods: Pods, port: int) -> None:
    """From the feed's pod to a client of the gateways; every probe says yes."""
    with following(f"ws://127.0.0.1:{port}/v1/stream") as follower:
        wait_for_windows(follower)
    assert follower.faults == []
    for pod in PODS:
        pods.wait(pod, 120)


def test_gateways_are_replaced_and_no_client_loses_a_window(
    pods: Pods, port: int
) -> None:
    """One at a time, under load: all come back, resume, and have everything."""
    url = f"ws://127.0.0.1:{port}/v1/stream"
    with ExitStack() as stack:
        follower = stack.enter_context(following(url))
        wait_for_windows(follower)
        clients = stack.enter_context(crowd(port))
        clients.connect(CLIENTS, sorted(follower.newest), KEYS_EACH)
        clients.come_back()
        for gateway in ("gateway-1", "gateway-2"):
            pods.stop(gateway)
            wait_for_windows(follower)
            pods.start(gateway)
            pods.wait(gateway, 60)
            wait_for_windows(follower)
        # Each gateway had some of them, and each of these came back.
        assert clients.returns() >= CLIENTS
        assert clients.close_codes().keys() == {1012}
        assert follower.connections >= 2
        assert follower.faults == []
        assert lost(follower, port) == set()


def test_the_archive_and_the_bars_are_made(pods: Pods) -> None:
    """By the pods of their own, into the volumes of their own."""
    redis = str(pods.port("valkey", "redis"))

    def has_bars() -> bool:
        count = pods.execute("valkey", "redis-cli", "-p", redis, "hlen", "tt:bars")
        return int(count) > 0

    eventually(has_bars, 120)
    find = ("find", "/var/lib/tickthrottle", "-name", "*.parquet")
    # It stores once a minute.
    eventually(lambda: pods.execute("archive", *find), 120)
    assert pods.execute("analytics", "ls", "/var/lib/tickthrottle/checkpoint")


def test_the_pages_commands_work_in_the_pods(pods: Pods) -> None:
    """What the page runs in a workload's pod, here run in it."""
    for line in commands("kubectl -n tickthrottle exec"):
        words = shlex.split(line)
        at = words.index("--")
        pods.execute(words[at - 1].partition("/")[2], *words[at + 1 :])
