"""Several jobs on one stream: what clients of a gateway see of a window in parts."""

import pytest

from tests.gateway.publisher import Publisher
from tests.gateway.samples import EPOCH, HYNIX, NAVER, SAMSUNG, make_row
from tests.gateway.servers import Gateway, running_gateway
from throttle.testing.driver import ThrottleDriver

pytestmark = pytest.mark.redis

Item = tuple[str, int, int]


def items(frame: dict[str, object]) -> list[Item]:
    """Return instrument, seq and trades of everything in a frame."""
    data = frame["data"]
    assert isinstance(data, list)
    return sorted((item["isin"], item["seq"], item["trades"]) for item in data)


def test_an_instrument_of_two_jobs_is_shown_once_per_window(
    gateway: Gateway, publisher: Publisher
) -> None:
    """The second job's other instruments at once, shared ones with the next window."""
    with gateway.stream("?keys=*") as stream:
        stream.take("ack")
        stream.take("snapshot")
        publisher.publish(make_row(SAMSUNG, seq=1), make_row(HYNIX, seq=1))
        first = stream.take("update")
        publisher.publish_part(make_row(SAMSUNG, seq=2, trades=5), make_row(NAVER))
        part = stream.take("update")
        publisher.publish(make_row(HYNIX, seq=2))
        later = stream.take("update")
    assert items(first) == [(HYNIX, 1, 1), (SAMSUNG, 1, 1)]
    assert items(part) == [(NAVER, 1, 1)]
    assert items(later) == [(HYNIX, 2, 1), (SAMSUNG, 2, 5)]
    assert first["window"] == part["window"] < later["window"]
    assert [frame["offset"] for frame in (first, part, later)] == [2, 2, 4]
    assert gateway.count("rows_held") == 1
    assert gateway.count("rows_stale") == 0


def test_a_job_that_is_behind_takes_no_window_back(
    gateway: Gateway, publisher: Publisher
) -> None:
    """Its rows come under the newest window, and only once in it."""
    with gateway.stream("?keys=*") as stream:
        stream.take("ack")
        stream.take("snapshot")
        publisher.publish(make_row(SAMSUNG))
        first = stream.take("update")
        publisher.publish_part(make_row(HYNIX, seq=1), windows_behind=2)
        late = stream.take("update")
        publisher.publish_part(make_row(HYNIX, seq=2), windows_behind=1)
        publisher.publish()
        last = stream.take("update")
    assert (items(late), items(last)) == ([(HYNIX, 1, 1)], [(HYNIX, 2, 1)])
    assert first["window"] == late["window"] < last["window"]
    assert gateway.health()["window"] == last["window"]


def test_what_was_held_back_is_not_lost_on_another_gateway(
    gateway: Gateway, publisher: Publisher, redis_url: str
) -> None:
    """The position of a frame is one from which nothing is missed, anywhere."""
    with gateway.stream("?keys=*") as stream:
        stream.take("ack")
        stream.take("snapshot")
        publisher.publish(make_row(SAMSUNG, seq=1))
        stream.take("update")
        publisher.publish_part(make_row(SAMSUNG, seq=2), make_row(HYNIX))
        since = {"epoch": EPOCH, "offset": stream.take("update")["offset"]}
    with running_gateway(redis_url) as other, other.stream() as stream:
        shown = stream.subscribe("*", since=since)
    assert {(item["isin"], item["seq"]) for item in shown} == {(SAMSUNG, 2), (HYNIX, 1)}


def test_a_gap_with_parts_is_healed(gateway: Gateway, publisher: Publisher) -> None:
    """The value is the newest as in every merged update; no trade is left out."""
    with gateway.stream("?keys=*") as stream:
        stream.take("ack")
        stream.take("snapshot")
        publisher.publish_lost(make_row(SAMSUNG, seq=1))
        publisher.publish_part(make_row(SAMSUNG, seq=2, trades=2))
        first = stream.take("update")
        publisher.publish()
        last = stream.take("update")
    assert (items(first), items(last)) == ([(SAMSUNG, 2, 1)], [(SAMSUNG, 2, 2)])
    assert gateway.count("gaps_healed") == 1


def test_two_jobs_as_they_publish(redis_url: str) -> None:
    """The jobs' own script: a trade that only the second one sees in time waits."""
    with (
        ThrottleDriver(redis_url=redis_url) as one,
        ThrottleDriver(redis_url=redis_url, job="other") as other,
        running_gateway(redis_url) as gateway,
    ):
        shown = []
        with gateway.stream("?keys=*") as stream:
            stream.take("ack")
            stream.take("snapshot")
            one.trade(HYNIX, "10", at_ms=100)
            one.turn_clock(2_000)
            other.turn_clock(2_000)
            stream.take("snapshot")
            for ms in (2_000, 4_000):
                one.trade(SAMSUNG, str(ms), at_ms=ms + 100)
                one.turn_clock(ms + 2_000)
                one.trade(SAMSUNG, str(ms + 1), at_ms=ms + 200)
                other.turn_clock(ms + 2_000)
            one.turn_clock(8_000)
            while not shown or shown[-1]["data"][0]["price"] != 4_001:
                shown.append(stream.take("update"))
        windows = [frame["window"] for frame in shown]
        prices = [frame["data"][0]["price"] for frame in shown]
        assert windows == sorted(set(windows))
        assert prices == sorted(set(prices))
        assert gateway.count("rows_held") == 2
