"""Becoming the one that publishes, on a real server."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import orjson
import pytest
import redis
from structlog.testing import capture_logs

from ingest.redis_keys import FORM
from ingest.tradelog.contract import LogInfo
from ingest.tradelog.redis_log_reader import open_log
from tests.conftest import eventually
from tests.ports import free_port
from tests.throttle.publishing import KEYS, A, Job, W, ledger_of, make_row
from throttle.contract.cut import Cut
from throttle.leadership import Candidate, JobRefused
from throttle.lease.lease import LeaseGrant
from throttle.lease.retry import Stopped
from throttle.settings import ThrottleSettings
from throttle.window.batch import Batch, BatchWindow, PartitionCount
from tickthrottle_client.log_v1 import append_time_ms, position_of, stream_key

pytestmark = pytest.mark.redis

LEASE_MS = 500


class Starter:
    """A job that is being started: its candidate, its lease, and what stops it."""

    def __init__(
        self, client: redis.Redis, is_rolled_back: bool = False, **changed: Any
    ) -> None:
        fields = {"job": "job", "lease_ms": LEASE_MS, "partitions": 2, "window_ms": W}
        self.settings = ThrottleSettings(**{**fields, **changed})
        self.stop = threading.Event()
        self.candidate = Candidate(client, self.settings, self.stop, is_rolled_back)
        self.lease = self.candidate.lease

    def take(self) -> tuple[LeaseGrant, bool]:
        """Take the lease for the log that is there."""
        taken = self.candidate.take(self.candidate.open_log(), lambda: None)
        assert taken is not None
        return taken


def server_ms(client: redis.Redis) -> int:
    """Return the server's clock."""
    seconds, micros = client.time()
    return int(seconds) * 1000 + int(micros) // 1000


@contextmanager
def running(client: redis.Redis) -> Iterator[Starter]:
    """Run a job of the name: somebody who holds the lease and keeps it."""
    job = Starter(client)
    grant, _ = job.take()
    with job.candidate.keeper(grant.term):
        yield job


def test_the_first_job_opens_the_log_and_starts_before_its_oldest_entry(
    client: redis.Redis,
) -> None:
    """Whoever comes first decides; what is in the log already is not skipped."""
    starter = Starter(client)
    info = starter.candidate.open_log()
    assert info.partitions == 2
    client.xadd(stream_key("tt", 1), {"trade": b"x"}, id=f"{10 * W + 7}-0")
    starter.candidate.check_free()
    grant, took_over = starter.take()
    assert took_over is False
    assert grant.cut == Cut(10 * W, (0, 0), (0, 0))
    assert starter.lease.holder() == starter.lease.owner


def test_a_second_job_of_the_name_is_refused_in_one_sentence(
    client: redis.Redis,
) -> None:
    """It says who runs and what to do about it; the other is not disturbed."""
    with running(client) as job:
        second = Starter(client)
        sentence = (
            f"another throttle job named 'job' is running ({job.lease.owner}): stop "
            "it, start this one with --standby, or give it another --job"
        )
        for refused in (second.candidate.check_free, second.take):
            with pytest.raises(JobRefused) as caught:
                refused()
            assert str(caught.value) == sentence
        assert job.lease.holder() == job.lease.owner


def test_a_job_of_another_name_is_welcome(client: redis.Redis) -> None:
    """Two jobs may share a stream."""
    with running(client):
        other = Starter(client, job="other")
        other.candidate.check_free()
        assert other.take()


def test_a_job_killed_a_moment_ago_is_waited_for(client: redis.Redis) -> None:
    """A supervisor that starts it again at once finds its own lease."""
    killed = Starter(client)
    killed.take()
    started = Starter(client)
    started.candidate.check_free()
    assert killed.lease.holder() is None
    killed.take()
    _, took_over = started.take()
    assert took_over


def test_a_standby_waits_and_takes_over(client: redis.Redis) -> None:
    """It says once that it waits and for whom, then goes on from the stored cut."""
    standby = Starter(client, standby=True)
    # The running job ends first, then what waits in the pool.
    with capture_logs() as logs, ThreadPoolExecutor(1) as pool, running(client) as job:
        standby.candidate.check_free()
        taken = pool.submit(standby.take)
        eventually(lambda: logs)
        assert not taken.done()
    _, took_over = taken.result()
    assert took_over
    assert [(e["event"], e["active"]) for e in logs] == [("standby", job.lease.owner)]


@pytest.mark.parametrize("standby", [True, False])
def test_a_job_that_waits_for_its_lease_can_be_stopped(
    client: redis.Redis, standby: bool
) -> None:
    """A container that is taken away again ends as quietly as it waits."""
    waiting = Starter(client, standby=standby, lease_ms=60_000)
    with running(client), ThreadPoolExecutor(1) as pool:
        call = waiting.take if standby else waiting.candidate.check_free
        waited = pool.submit(call)
        waiting.stop.set()
    with pytest.raises(Stopped, match="told to stop while waiting for the lease"):
        waited.result()


def test_a_new_job_may_start_with_what_comes(client: redis.Redis) -> None:
    """It begins at the newest boundary: what is older was not its business.

    The books begin there too, with the log's own counts.
    """
    starter = Starter(client, start="latest")
    starter.candidate.open_log()
    key = stream_key("tt", 1)
    old = client.xadd(key, {"trade": b"x"}, id=f"{10 * W + 7}-0")
    now = client.xadd(key, {"trade": b"x"})
    end_ms = starter.take()[0].cut.end_ms
    assert end_ms % W == 0
    assert append_time_ms(position_of(now)) // W * W <= end_ms <= server_ms(client)
    # The window that is not over is read from its beginning.
    before = [p for p in map(position_of, (old, now)) if append_time_ms(p) < end_ms]
    since = ledger_of(client).since
    assert since == Cut(end_ms, (0, before[-1]), (0, len(before)))


def test_only_a_job_that_never_ran_starts_with_what_comes(
    client: redis.Redis,
) -> None:
    """A restart goes on where the job stopped, whatever was said."""
    starter = Starter(client)
    starter.candidate.open_log()
    client.xadd(stream_key("tt", 1), {"trade": b"x"}, id=f"{10 * W + 7}-0")
    grant, _ = starter.take()
    starter.lease.release(grant.term)
    again, _ = Starter(client, start="latest").take()
    assert again.cut == grant.cut == Cut(10 * W, (0, 0), (0, 0))
    assert again.since == grant.since == grant.cut


def test_a_job_that_lost_its_stream_leaves_nothing_out(client: redis.Redis) -> None:
    """What was published went with the stream: the log is read from its beginning."""
    starter = Starter(client, is_rolled_back=True, start="latest")
    starter.candidate.open_log()
    client.xadd(stream_key("tt", 1), {"trade": b"x"}, id=f"{10 * W + 7}-0")
    assert starter.take()[0].cut == Cut(10 * W, (0, 0), (0, 0))


def test_a_job_on_some_partitions_starts_with_those(client: redis.Redis) -> None:
    """What another partition holds does not move its start."""
    starter = Starter(client, only_partitions="1", partitions=3)
    starter.candidate.open_log()
    client.xadd(stream_key("tt", 0), {"trade": b"x"}, id=f"{5 * W}-0")
    client.xadd(stream_key("tt", 1), {"trade": b"x"}, id=f"{10 * W + 7}-0")
    assert starter.take()[0].cut == Cut(10 * W, (0,), (0,), (1,))


@pytest.mark.parametrize("only", ["2", "0,17"])
def test_partitions_the_log_does_not_have_are_refused(
    client: redis.Redis, only: str
) -> None:
    """Nobody would notice that they are never read."""
    starter = Starter(client, only_partitions=only)
    with pytest.raises(JobRefused) as caught:
        starter.take()
    assert str(caught.value) == (
        f"only_partitions {only}: the log has the partitions 0 to 1"
    )
    assert starter.lease.holder() is None


@pytest.mark.parametrize(
    ("before", "after", "known"), [("", "1", "0, 1"), ("1", "", "1")]
)
def test_other_partitions_than_before_are_refused(
    client: redis.Redis, before: str, after: str, known: str
) -> None:
    """A job's cut and books are of its partitions; of others it knows nothing."""
    first = Starter(client, only_partitions=before)
    first.lease.release(first.take()[0].term)
    second = Starter(client, only_partitions=after)
    with pytest.raises(JobRefused) as caught:
        second.take()
    assert str(caught.value) == (
        f"only_partitions {after!r}: the job 'job' has read the partitions {known}; "
        "start it under another --job"
    )
    assert second.lease.holder() is None
    assert Starter(client, only_partitions=after, job="other").take()
    assert Starter(client, only_partitions=before).take()


def test_the_same_partitions_may_be_written_in_another_way(
    client: redis.Redis,
) -> None:
    """All of them by number, or none named: both are the whole log."""
    first = Starter(client)
    first.lease.release(first.take()[0].term)
    assert Starter(client, only_partitions="1,0-1").take()


def test_a_job_that_reads_all_may_find_that_they_became_more(
    client: redis.Redis,
) -> None:
    """A partition may be added to a topic; its job reads it from its beginning."""
    first = Starter(client)
    first.lease.release(first.take()[0].term)
    client.hset("tt:log", "partitions", 3)
    grant, _ = Starter(client).take()
    assert grant.cut.partitions == (0, 1)


def test_a_log_in_redis_that_is_another_one_is_read_from_its_beginning(
    client: redis.Redis,
) -> None:
    """It was emptied; where the job was in the old one does not matter."""
    first = Starter(client, only_partitions="1")
    first.lease.release(first.take()[0].term)
    client.hset("tt:log", "id", "another")
    assert Starter(client).take()[0].cut.partitions == (0, 1)


def test_a_topic_that_is_another_one_is_refused(client: redis.Redis) -> None:
    """Its offsets begin anew: the job would wait for its old position for ever."""
    starter = Starter(client, trade_log="kafka", kafka_topic="deals")
    offset = orjson.dumps(Cut(8_000, (77,), (78,)).to_offset())
    client.hset(KEYS.meta, mapping={"log:job": "kafka:old", "cut:job": offset})
    with pytest.raises(JobRefused) as caught:
        starter.candidate._check_log(LogInfo("kafka:new", 1, 0))
    assert str(caught.value) == (
        "kafka_topic deals: the job 'job' has read another log (kafka:old, this one "
        "is kafka:new); its positions mean nothing here: start it under another --job"
    )


def test_windows_of_another_length_or_form_are_refused(client: redis.Redis) -> None:
    """Two lengths in one stream would make every window's end a guess.

    Another version's form would be read for something else.
    """
    job = Job(client)
    job.publish([make_row(A, 1)])
    job.lease.release(job.term)
    sentence = (
        "window_ms 1000: this stream has windows of 2000 ms; use another namespace"
    )
    with pytest.raises(JobRefused) as caught:
        Starter(client, window_ms=1_000).take()
    assert str(caught.value) == sentence
    for form in (FORM - 1, FORM + 1):
        client.hset("tt:meta", "form", form)
        with pytest.raises(
            JobRefused, match=f"the form '{form}', this version has {FORM}"
        ):
            Starter(client, window_ms=W).take()
    client.hset("tt:meta", "form", FORM)
    assert Starter(client, window_ms=W).take()[0].term > job.term


def test_a_log_that_became_another_is_not_sat_on(client: redis.Redis) -> None:
    """The query was started for the old one: it has to be started again."""
    starter = Starter(client)
    info = starter.candidate.open_log()
    client.flushall()
    assert starter.candidate.take(info, lambda: None) is None
    assert starter.lease.holder() is None


def test_what_is_checked_while_waiting_may_end_it(client: redis.Redis) -> None:
    """A standby whose Spark has died does not wait for ever."""

    def check() -> None:
        raise RuntimeError("Spark has died")

    starter = Starter(client)
    with pytest.raises(RuntimeError, match="Spark has died"):
        starter.candidate.take(starter.candidate.open_log(), check)


def test_a_publisher_publishes_under_the_settings(client: redis.Redis) -> None:
    """Name, window length and bounds are the job's."""
    starter = Starter(client)
    grant, _ = starter.take()
    end = Cut(grant.cut.end_ms + W, (0, 0), (0, 0))
    counts = [PartitionCount(), PartitionCount()]
    batch = Batch(grant.cut, end, [BatchWindow(end.end_ms)], counts, [])
    assert starter.candidate.publish(batch, 0).offset == 1
    assert client.hget(KEYS.meta, "window_ms") == b"%d" % W
    assert ledger_of(client).upto == end


def test_a_server_that_is_away_is_waited_for(own_client: redis.Redis) -> None:
    """The lease is taken as soon as the server takes writes again."""
    own_client.replicaof("127.0.0.1", free_port())
    starter = Starter(own_client)

    def take() -> LeaseGrant:
        starter.candidate.check_free()
        return starter.take()[0]

    with capture_logs() as logs, ThreadPoolExecutor(1) as pool:
        grant = pool.submit(take)
        eventually(lambda: logs)
        own_client.replicaof("NO", "ONE")
    assert grant.result().term > 0
    assert [e["event"] for e in logs] == ["redis is away", "redis is back"]
    assert open_log(own_client, "tt", 2) == starter.candidate.open_log()


def test_a_job_that_has_read_a_topic_is_not_started_on_redis(
    client: redis.Redis,
) -> None:
    """A forgotten setting must not throw away where the job was."""
    offset = orjson.dumps(Cut(8_000, (77,), (78,)).to_offset())
    client.hset(KEYS.meta, mapping={"log:job": "kafka:old", "cut:job": offset})
    with pytest.raises(JobRefused, match="log redis: the job 'job' has read another"):
        Starter(client).candidate.open_log()
    assert client.hget(KEYS.meta, "cut:job") == offset
