"""Who may publish, on a real server."""

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from structlog.testing import capture_logs

from tests.conftest import eventually
from tests.ports import free_port
from tests.published import read_snapshots
from tests.throttle.publishing import (
    KEYS,
    A,
    Job,
    W,
    batches_of,
    dump_all,
    ledger_of,
    make_row,
)
from throttle.contract.cut import Cut
from throttle.contract.ledger import Books
from throttle.lease.lease import Keeper, Lease, LeaseGrant, LeaseHeld
from throttle.lease.retry import OutageLog

pytestmark = pytest.mark.redis

FIRST = Cut(W, (0, 0), (3, 0))
LONG_MS, SHORT_MS = 60_000, 100


def make_lease(client: redis.Redis, ttl_ms: int = LONG_MS, job: str = "job") -> Lease:
    """Make the lease of another process that runs the job."""
    return Lease(client, KEYS, job, ttl_ms)


def take(lease: Lease, log_id: str = "log", is_rolled_back: bool = False) -> LeaseGrant:
    """Take a lease that is free."""
    grant = lease.acquire(log_id, FIRST, is_rolled_back)
    assert isinstance(grant, LeaseGrant)
    return grant


def wait_until_free(lease: Lease) -> None:
    """Wait until nobody holds a lease."""
    eventually(lambda: lease.holder() is None)


def test_the_first_job_starts_where_it_was_told(client: redis.Redis) -> None:
    """Its books begin there too."""
    lease = make_lease(client)
    grant = take(lease)
    assert grant.cut == FIRST
    assert lease.holder() == lease.owner
    ledger = ledger_of(client)
    assert (ledger.since, ledger.upto, ledger.batches) == (FIRST, FIRST, 0)
    assert ledger.problems() == []


def test_a_lease_is_held_by_one(client: redis.Redis) -> None:
    """The other is told by whom, and nothing changes."""
    first, second = make_lease(client), make_lease(client)
    take(first)
    before = dump_all(client, KEYS.lease("job"))
    assert second.acquire("log", FIRST) == LeaseHeld(first.owner)
    assert second.acquire("other", FIRST, is_rolled_back=True) == LeaseHeld(first.owner)
    assert dump_all(client, KEYS.lease("job")) == before
    assert first.owner != second.owner


def test_a_lease_that_is_not_renewed_runs_out(client: redis.Redis) -> None:
    """The next job goes on where the last one published, under a greater term."""
    job = Job(client)
    job.publish([make_row(A, 1)])
    assert job.lease.renew(job.term)
    client.pexpire(KEYS.lease("job"), SHORT_MS)
    second = make_lease(client)
    wait_until_free(second)
    grant = second.acquire("log", FIRST)
    assert isinstance(grant, LeaseGrant)
    assert grant.term > job.term
    assert (grant.cut, grant.epoch) == (job.cut, job.epoch)


def test_whoever_holds_a_lease_may_take_it_again(client: redis.Redis) -> None:
    """After the stream was lost the same process starts anew."""
    lease = make_lease(client)
    first, second, third = (take(lease).term for _ in range(3))
    assert first < second < third


def test_renewing_puts_off_the_end(client: redis.Redis) -> None:
    """A living job keeps its lease."""
    lease = make_lease(client)
    term = take(lease).term
    client.pexpire(KEYS.lease("job"), 5_000)
    assert lease.renew(term)
    assert client.pttl(KEYS.lease("job")) > 50_000


def test_a_sleeper_takes_its_lease_again_if_nobody_else_has(
    client: redis.Redis,
) -> None:
    """A pause longer than the lease does no harm by itself."""
    lease = make_lease(client, SHORT_MS)
    term = take(lease).term
    wait_until_free(lease)
    assert lease.renew(term)
    assert lease.holder() == lease.owner


def test_a_sleeper_that_was_replaced_is_told(client: redis.Redis) -> None:
    """It neither gets the lease back nor takes it from its successor."""
    sleeper, successor = make_lease(client, SHORT_MS), make_lease(client)
    term = take(sleeper).term
    wait_until_free(sleeper)
    take(successor)
    assert not sleeper.renew(term)
    sleeper.release(term)
    assert successor.holder() == successor.owner


def test_a_restored_server_has_not_replaced_anybody(client: redis.Redis) -> None:
    """Its term is an older one, so nobody can have taken over."""
    lease = make_lease(client)
    take(lease)
    restored = client.dump(KEYS.meta)
    term = take(lease).term
    client.restore(KEYS.meta, 0, restored, replace=True)
    assert lease.renew(term)
    client.flushall()
    assert lease.renew(term)


def test_a_released_lease_is_free_at_once(client: redis.Redis) -> None:
    """A job that ends well does not keep the next one waiting."""
    first, second = make_lease(client), make_lease(client)
    first.release(take(first).term)
    assert first.holder() is None
    # An open batch of this process ends for it, and not for a lease that ran out.
    assert client.hget(KEYS.meta, "released:job") == first.owner.encode()
    assert take(second)


def test_a_lease_that_ran_out_can_still_be_given_back(client: redis.Redis) -> None:
    """An open batch of its process must not outlast it; an emptied server stays so."""
    lease = make_lease(client)
    term = take(lease).term
    client.delete(KEYS.lease("job"))
    lease.release(term)
    assert client.hget(KEYS.meta, "released:job") == lease.owner.encode()
    client.flushall()
    lease.release(term)
    assert client.dbsize() == 0


def test_nobody_gives_back_another_s_lease(client: redis.Redis) -> None:
    """Nor is its term given again, even by a server that was emptied."""
    first, second = make_lease(client), make_lease(client)
    term = take(first).term
    client.flushall()
    assert take(second).term > term
    first.release(term)
    assert second.holder() == second.owner


def test_the_epoch_stays_while_nothing_was_lost(client: redis.Redis) -> None:
    """A restart of the job is no break of the numbering."""
    lease = make_lease(client)
    assert len({take(lease).epoch for _ in range(3)}) == 1
    assert take(make_lease(client, job="other")).epoch == take(lease).epoch


def test_a_server_that_was_restarted_begins_a_new_epoch(client: redis.Redis) -> None:
    """It may have lost what gateways have seen; offsets and windows go on."""
    job = Job(client)
    job.publish([make_row(A, 1)])
    client.hset(KEYS.meta, "server", "another run")
    epoch = job.epoch
    job.start()
    assert job.epoch != epoch
    assert job.publish([make_row(A, 2)]).offset == 2
    assert [s.epoch for s in read_snapshots(client)] == [epoch, job.epoch]
    epoch = job.epoch
    job.start()
    assert job.epoch == epoch


def test_a_job_that_saw_the_stream_go_back_begins_a_new_epoch(
    client: redis.Redis,
) -> None:
    """It knows what the server has forgotten."""
    lease = make_lease(client)
    first = take(lease).epoch
    second = take(lease, is_rolled_back=True).epoch
    assert first != second
    assert take(lease).epoch == second


def test_a_stream_that_is_gone_begins_again_with_offset_1(client: redis.Redis) -> None:
    """What is left of the old one would be in the way, and is removed."""
    job = Job(client)
    for n in range(3):
        job.publish([make_row(A, 10 + n)])
    client.delete(KEYS.meta)
    epoch = job.epoch
    job.cut = FIRST
    job.start()
    assert job.epoch != epoch
    assert job.cut == FIRST
    assert not client.exists(KEYS.last, KEYS.windows, KEYS.batches("job"))
    assert ledger_of(client).total == Books()
    assert job.publish([make_row(A, 1)]).offset == 1


def test_another_log_is_begun_at_its_beginning_with_new_books(
    client: redis.Redis,
) -> None:
    """Positions of one log mean nothing in another; the stream goes on."""
    job, other = Job(client), Job(client, "other")
    job.publish([make_row(A, 1)])
    other.publish([make_row(A, 2)])
    epoch = job.epoch
    grant = job.lease.acquire("another log", FIRST)
    assert (grant.cut, grant.epoch) == (FIRST, epoch)
    ledger = ledger_of(client)
    assert (ledger.since, ledger.total) == (FIRST, Books())
    assert batches_of(client) == []
    assert len(read_snapshots(client)) == 2
    assert ledger_of(client, "other").total == Books(1, 1)
    assert len(batches_of(client, "other")) == 1


def test_a_ledger_that_is_gone_begins_again_at_the_cut(client: redis.Redis) -> None:
    """The books say since when they are kept."""
    job = Job(client)
    job.publish([make_row(A, 1)])
    client.delete(KEYS.ledger("job"))
    job.start()
    assert ledger_of(client).since == job.cut
    job.publish([make_row(A, 2)])
    assert ledger_of(client).total == Books(1, 1)
    assert ledger_of(client).problems() == []


def test_a_keeper_holds_the_lease_and_gives_it_back(client: redis.Redis) -> None:
    """It is renewed again and again, and free when the job has ended."""
    lease, key = make_lease(client, SHORT_MS), KEYS.lease("job")
    term = take(lease).term
    with Keeper(lease, term, SHORT_MS, OutageLog()) as keeper:
        for _ in range(5):
            # Without an end of its own it gets one only by being renewed.
            client.persist(key)
            eventually(lambda: client.pttl(key) > 0)
        assert not keeper.is_fenced
        client.persist(key)
    assert lease.holder() is None


def test_a_keeper_notices_that_it_was_replaced(client: redis.Redis) -> None:
    """It says so and leaves its successor's lease alone."""
    lease, successor = make_lease(client, SHORT_MS), make_lease(client)
    term = take(lease).term

    def take_over() -> bool:
        client.delete(KEYS.lease("job"))
        return isinstance(successor.acquire("log", FIRST), LeaseGrant)

    with Keeper(lease, term, SHORT_MS, OutageLog()) as keeper:
        eventually(take_over)
        eventually(lambda: keeper.is_fenced)
    assert successor.holder() == successor.owner


def test_a_keeper_says_that_the_server_is_away_and_back(client: redis.Redis) -> None:
    """Meanwhile nobody is fenced; afterwards the lease is held again."""
    lease = make_lease(client, SHORT_MS)
    term = take(lease).term
    with capture_logs() as logs, Keeper(lease, term, SHORT_MS, OutageLog()) as keeper:
        good = client.dump(KEYS.meta)
        client.set(KEYS.meta, "in the way")
        wait_until_free(lease)
        eventually(lambda: len(logs) == 1)
        assert not keeper.is_fenced
        client.restore(KEYS.meta, 0, good, replace=True)
        eventually(lambda: len(logs) == 2 and lease.holder() == lease.owner)
    assert [entry["event"] for entry in logs] == ["redis is away", "redis is back"]


def test_a_keeper_without_a_server_ends_quietly() -> None:
    """The lease runs out by itself."""
    dead = redis.Redis(port=free_port(), retry=Retry(NoBackoff(), 0))
    with Keeper(make_lease(dead, SHORT_MS), 1, SHORT_MS, OutageLog()) as keeper:
        assert not keeper.is_fenced
