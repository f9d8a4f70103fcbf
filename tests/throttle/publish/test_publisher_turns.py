"""Several processes of one job that publish in turns, as tasks and driver do."""

from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import many
from tests.published import read_snapshots
from tests.throttle.publishing import KEYS, A, B, Job, W, ledger_of, make_row
from throttle.publish.publisher import REPEATED, Publisher, PublishOptions

pytestmark = pytest.mark.redis

C = "KR7035420009"
PROCESSES = 3

window = st.lists(
    st.tuples(st.sampled_from((A, B, C)), st.integers(1, 9), st.integers(1, 3)),
    max_size=4,
    unique_by=lambda row: row[0],
)
# Who publishes a window, who has looked at it before, and who tries it afterwards.
turn = st.tuples(
    st.integers(0, PROCESSES - 1),
    st.sets(st.integers(0, PROCESSES - 1)),
    st.sets(st.integers(0, PROCESSES - 1)),
    window,
)


def published_by(
    client: redis.Redis, turns: list[Any], processes: int
) -> tuple[Any, ...]:
    """Return what is stored once all windows are published by so many processes."""
    client.flushall()
    job = Job(client)
    options = PublishOptions("job", W, window_log=100)
    publishers = [Publisher(client, KEYS, options, job.term) for _ in range(processes)]
    for number, (who, prepared, late, rows) in enumerate(turns):
        work = job.batch([make_row(i, t, trades=n) for i, t, n in rows])
        isins = {isin for isin, *_ in rows}
        for process in prepared:
            publishers[process % processes].prepare(work.start, isins)
        assert publishers[who % processes].publish(work, number).windows == 1
        for process in late:
            publishers[process % processes].prepare(work.start, isins)
            assert publishers[process % processes].publish(work, number) == REPEATED
        job.cut = work.end
    return (
        client.hgetall(KEYS.days_so_far),
        client.hgetall(KEYS.last),
        [snapshot.rows for snapshot in read_snapshots(client)],
        ledger_of(client),
    )


@settings(
    max_examples=many(40), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(turn, max_size=8))
def test_whoever_publishes_a_window_the_same_is_stored(
    client: redis.Redis, turns: list[Any]
) -> None:
    """No process trusts days that another one has moved on; a repeat moves nothing."""
    alone = published_by(client, turns, 1)
    assert published_by(client, turns, PROCESSES) == alone


def test_a_process_that_publishes_all_windows_asks_once(
    client: redis.Redis,
) -> None:
    """For versions, days and the chain: what it has published itself it knows."""
    job = Job(client)
    for number in range(4):
        start, asked = job.cut, _questions(client)
        job.publisher.prepare(start, {A, B})
        assert _questions(client) - asked == (3 if number == 0 else 0)
        job.publish([make_row(A, number + 1), make_row(B, number + 1)])
        # The script's own one.
        assert _questions(client) - asked == (4 if number == 0 else 1)


def _questions(client: redis.Redis) -> int:
    stats: Any = client.info("commandstats")
    return int(stats.get("cmdstat_hmget", {"calls": 0})["calls"])
