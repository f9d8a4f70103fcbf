"""The feed in a process of its own: on time, complete, and honest about its lag."""

from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import redis

from ingest.settings import IngestSettings
from ingest.sources.rate_profile import Profile
from ingest.sources.replay import ReplayOptions
from ingest.sources.simulator import Simulator
from ingest.trade import Trade
from loadtest.feed.fed import Fed, add_up
from loadtest.feed.feed_plan import FeedPlan
from loadtest.feed.feeding import Feed, FeedFailed, feeding
from tests.conftest import eventually
from tests.ingest.topics import logged, make_topic
from tests.kafka_broker.broker import Broker
from tests.ports import free_port
from tickthrottle_client.log_v1 import append_time_ms, position_of


def make_plan(text: str, **options: object) -> FeedPlan:
    market = Simulator(profile=Profile.parse(text), instruments=50, **options)  # type: ignore[arg-type]
    return FeedPlan(market)


def settings_of(redis_url: str) -> IngestSettings:
    return IngestSettings(redis_url=redis_url, partitions=2)


def entries_of(client: redis.Redis) -> list[tuple[int, bytes]]:
    return sorted(
        (append_time_ms(position_of(entry_id)), fields[b"trade"])
        for partition in range(2)
        for entry_id, fields in client.xrange(f"tt:log:{partition}")
    )


def collect(feed: Feed) -> Callable[[], Fed | None]:
    """Return what gathers what a feed does, and returns it once it is over."""
    done: list[Fed] = []

    def gather() -> Fed | None:
        done.append(feed.tick())
        return add_up(done) if feed.is_over else None

    return gather


@pytest.mark.redis
def test_everything_that_is_due_is_in_the_log(
    redis_url: str, client: redis.Redis
) -> None:
    """Each trade is acknowledged once and stamped with its due time by the clock."""
    plan = make_plan("2000:1.5s", disorder=0.0, repeats=0.0)
    with feeding(plan, settings_of(redis_url)) as feed:
        feed.start()
        done = eventually(collect(feed))
        account = feed.stop()
    entries = entries_of(client)
    assert account.acknowledged == len(entries) == 3_000
    assert account.behind_ms.count
    assert account.words == "simulated market, 50 instruments, 2,000/s for 1.5 s"
    assert done is not None
    assert 1_000 < done.acknowledged <= account.acknowledged
    times_us = [Trade.from_wire(payload).time_us for _, payload in entries]
    began_us = feed.began_ms * 1_000
    assert 0 <= min(times_us) - began_us < 100_000
    assert 0 <= began_us + 1_500_000 - max(times_us) < 100_000
    # Never in the log before its time; the server cuts its clock to milliseconds.
    assert all(
        at_ms >= time_us // 1_000
        for (at_ms, _), time_us in zip(entries, times_us, strict=True)
    )


@pytest.mark.redis
def test_the_clock_starts_when_told(redis_url: str, client: redis.Redis) -> None:
    """A feed that is ready appends nothing, and can be left without a start."""
    with feeding(make_plan("1000"), settings_of(redis_url)) as feed:
        assert psutil.pid_exists(feed.pid)
        assert client.exists("tt:log")
        assert not entries_of(client)
        assert feed.tick() == Fed()
    assert not psutil.pid_exists(feed.pid)


@pytest.mark.redis
def test_the_lag_grows_while_the_log_is_silent(
    redis_url: str, client: redis.Redis
) -> None:
    """The schedule does not wait for the log, and the lag is told while it lasts."""
    with feeding(make_plan("1000:60s"), settings_of(redis_url)) as feed:
        feed.start()
        eventually(lambda: feed.tick().acknowledged)
        client.execute_command("CLIENT", "PAUSE", 2_500, "WRITE")
        parts: list[Fed] = []
        eventually(
            lambda: parts.append(feed.tick()) or add_up(parts).seconds > 2, within_s=20
        )
        account = feed.stop()
    assert add_up(parts).behind_ms > 1_000
    assert account.behind_ms.max is not None
    assert account.behind_ms.max > 1_000


@pytest.mark.redis
def test_a_feed_that_cannot_run_says_why(redis_url: str, tmp_path: Path) -> None:
    """A tape that is missing, a server that is not there: one clear sentence."""
    plan = FeedPlan(ReplayOptions(), (tmp_path / "none",))
    with (
        pytest.raises(FeedFailed, match=r"tape .*none: cannot be read"),
        feeding(plan, settings_of(redis_url)),
    ):
        pass
    nowhere = f"redis://127.0.0.1:{free_port()}/0"
    with (
        pytest.raises(FeedFailed, match=r"the trade log at redis:.*127\.0\.0\.1"),
        feeding(make_plan("1"), settings_of(nowhere)),
    ):
        pass


@pytest.mark.redis
def test_the_death_of_a_feed_is_told(redis_url: str) -> None:
    """A process that was killed does not leave its owner waiting."""
    with feeding(make_plan("1000"), settings_of(redis_url)) as feed:
        feed.start()
        psutil.Process(feed.pid).kill()
        with pytest.raises(FeedFailed, match="died with exit code -9"):
            feed.stop()


@pytest.mark.kafka
def test_a_topic_is_fed_as_well(kafka: Broker) -> None:
    topic = make_topic(kafka, 2)
    settings = IngestSettings(
        trade_log="kafka", kafka_servers=topic.servers, kafka_topic=topic.topic
    )
    with feeding(make_plan("500:2s", malformed=0.2), settings) as feed:
        feed.start()
        eventually(collect(feed), within_s=30)
        account = feed.stop()
    assert account.acknowledged == 1_000
    assert sum(len(messages) for messages in logged(topic, 2)) == 1_000
