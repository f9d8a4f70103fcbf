"""Figures of markets and sectors, through Redis and a socket."""

import re
import subprocess
import sys
from typing import Any

import pytest

from tests.conftest import eventually
from tests.gateway.publisher import Publisher
from tests.gateway.samples import (
    HYNIX,
    INSTRUMENT_LIST,
    NAVER,
    SAMSUNG,
    make_group,
    make_row,
)
from tests.gateway.servers import Gateway, Stream, running_gateway
from tests.gateway.transport.test_sse import listening
from tests.paths import ROOT

pytestmark = pytest.mark.redis

KOSPI, CHIPS = "group:market:KOSPI", "group:sector:chips"


def groups_of(frame: dict[str, Any]) -> dict[str, int]:
    """Return the groups in a frame and their trades."""
    return {g["group"]: g["trades"] for g in frame.get("groups", [])}


def isins_of(frame: dict[str, Any]) -> list[str]:
    """Return the instruments in a frame."""
    return [item["isin"] for item in frame.get("data", ())]


def documented_client(url: str) -> str:
    """Return the example of the protocol's page, for another gateway and a sector."""
    page = (ROOT / "docs" / "protocol.md").read_text("utf-8")
    [text] = re.findall(r"### Groups\n.*?```python\n(.*?)```", page, re.DOTALL)
    text = text.replace("ws://127.0.0.1:8000", url)
    return str(text).replace("sector:Semiconductors", "sector:chips")


def test_a_newcomer_sees_a_market_and_the_figures_of_a_sector(
    publisher: Publisher, redis_url: str
) -> None:
    """With the ten lines that the page has."""
    publisher.list_instruments()
    publisher.publish(make_row(NAVER, "0.30"))
    with running_gateway(redis_url) as gateway:
        gateway.wait_for("reloads")
        text = documented_client(f"ws://{gateway.host}:{gateway.port}")
        assert len([line for line in text.splitlines() if line.strip()]) <= 12
        with subprocess.Popen(
            [sys.executable, "-u", "-c", text], stdout=subprocess.PIPE, text=True
        ) as client:
            try:
                assert client.stdout is not None
                assert client.stdout.readline() == f"{NAVER} 0.3\n"
                figures = {"instruments": 4, "advancing": 3, "declining": 1}
                chips = make_group("sector:chips", 9, **figures)
                rows = [make_row(SAMSUNG), make_row(NAVER, seq=2)]
                publisher.publish(*rows, groups=[chips])
                shown = [client.stdout.readline() for _ in range(2)]
                assert shown == [f"{NAVER} 199500\n", f"{CHIPS} 3 up 1 down\n"]
            finally:
                client.kill()


def test_who_follows_a_sector_follows_its_renaming(
    publisher: Publisher, gateway: Gateway
) -> None:
    """Its instruments and its figures: both keys are called otherwise, and go on."""
    publisher.list_instruments()
    eventually(lambda: b'"count":3,' in gateway.get("/v1/instruments")[1])
    with gateway.stream() as stream:
        assert stream.subscribe("sector:chips", CHIPS, "market:KOSDAQ") == []
        publisher.list_instruments(
            INSTRUMENT_LIST.replace(",chips,", ",semiconductors,")
        )
        told = stream.take("members")
        assert told["renamed"] == {
            "sector:chips": "sector:semiconductors",
            CHIPS: "group:sector:semiconductors",
        }
        assert told["members"] == {"sector:semiconductors": [HYNIX, SAMSUNG]}
        rows = [make_row(SAMSUNG), make_row(NAVER)]
        publisher.publish(*rows, groups=[make_group("sector:semiconductors", 4)])
        frame = next_with_groups(stream)
        assert isins_of(frame) == [SAMSUNG, NAVER]
        assert groups_of(frame) == {"group:sector:semiconductors": 4}


def next_with_groups(stream: Stream) -> dict[str, Any]:
    """Return the next snapshot or update that has groups."""
    while True:
        frame = stream.next()
        if "groups" in frame:
            return frame


def test_clients_of_groups_alone_get_frames_without_data(
    publisher: Publisher, gateway: Gateway
) -> None:
    """Quiet windows bring nothing."""
    with gateway.stream("?keys=group:market:KOSPI") as stream:
        assert stream.take("ack")["accepted"] == [KOSPI]
        assert "groups" not in stream.take("snapshot")
        publisher.publish(make_row(), groups=[make_group(trades=5)])
        frames = [stream.take("update")]
        publisher.publish(make_row(HYNIX))
        gateway.wait_until(3)
        publisher.publish(groups=[make_group(trades=6)])
        frames.append(stream.take("update"))
    assert [groups_of(frame) for frame in frames] == [{KOSPI: 5}, {KOSPI: 6}]
    assert [frame["offset"] for frame in frames] == [2, 4]
    assert [frame["groups"][0]["window"] for frame in frames] == [
        frame["window"] for frame in frames
    ]
    assert all(frame["data"] == [] for frame in frames)


def test_events_bring_groups_too(publisher: Publisher, gateway: Gateway) -> None:
    """And resume where they were."""
    publisher.publish(groups=[make_group(trades=5), make_group("sector:chips", 1)])
    gateway.wait_until(2)
    with listening(gateway, "?keys=group:*") as (_, events):
        events.take("welcome")
        events.take("ack")
        assert groups_of(events.take("snapshot").data) == {KOSPI: 5, CHIPS: 1}
        publisher.publish(groups=[make_group(trades=6)])
        assert groups_of(events.take("update").data) == {KOSPI: 6}
    with listening(gateway, "?keys=group:*", last_event_id="k3x9:2") as (_, events):
        events.take("welcome")
        events.take("ack")
        assert groups_of(events.take("snapshot").data) == {KOSPI: 6}


def test_what_two_jobs_publish_is_one_figure(
    publisher: Publisher, redis_url: str
) -> None:
    """Also on a gateway that starts in the middle of a window."""
    publisher.know_jobs("one", "two")
    for trades in (1, 2):
        publisher.publish(make_row(), groups=[make_group(trades=trades)])
        publisher.publish_part(groups=[make_group(trades=10)])
    publisher.publish(groups=[make_group(trades=3)])
    with running_gateway(redis_url) as gateway:
        gateway.wait_for("reloads")
        with gateway.stream("?keys=group:*") as stream:
            stream.take("ack")
            assert groups_of(stream.take("snapshot")) == {KOSPI: 12}
            publisher.publish_part(groups=[make_group(trades=10)])
            publisher.publish(groups=[make_group(trades=4)])
            # Its snapshot was of the window before.
            assert groups_of(stream.take("update")) == {KOSPI: 13}
        assert b'"trades":13,' in gateway.get(f"/v1/groups/{KOSPI}")[1]
        publisher.publish_part(groups=[make_group()], windows_behind=1)
        publisher.publish_part(groups=[make_group(trades=20)])
        gateway.wait_until(9)
        assert b'"trades":24,' in gateway.get(f"/v1/groups/{KOSPI}")[1]
        assert gateway.count("groups_late") == 1


def test_figures_of_a_hole_are_made_up_for(
    publisher: Publisher, gateway: Gateway
) -> None:
    """From the window log, and from the stored state when the log is gone."""
    with gateway.stream("?keys=group:*") as stream:
        stream.take("ack")
        stream.take("snapshot")
        publisher.publish_lost(groups=[make_group("sector:chips", 7)])
        publisher.publish(groups=[make_group(trades=5)])
        assert groups_of(stream.take("update")) == {CHIPS: 7, KOSPI: 5}
        publisher.publish_lost(groups=[make_group("sector:chips", 8)])
        publisher.forget_windows()
        publisher.publish_lost()
        publisher.repeat(publisher.publish_lost(groups=[make_group(trades=6)]))
        assert groups_of(stream.take("update")) == {CHIPS: 8, KOSPI: 6}
