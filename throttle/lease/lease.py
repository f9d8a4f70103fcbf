"""Who may publish: one job of a name at a time, and only under its newest term.

The lease says who is alive: it runs out when its holder stops renewing it. The term is
what protects the stream: it grows with every holder, and the publish script refuses
any but the newest, however late a message of an older holder arrives.
"""

import os
import socket
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from secrets import token_hex
from typing import Self, cast

import orjson
import redis

from ingest.redis_keys import FORM, Keys
from throttle.contract.candidate import candidate_field, encode_candidate
from throttle.contract.cut import Cut
from throttle.lease.retry import OutageLog

RENEWALS_PER_TTL = 4


class Fenced(RuntimeError):
    """Another job of this name has taken over; this one must not publish any more."""


@dataclass(frozen=True, slots=True)
class LeaseGrant:
    """A lease that was given: under which term, and from which cut to go on.

    The job's books begin at the cut ``since``: what is before it was never counted.
    """

    term: int
    cut: Cut
    epoch: str
    since: Cut


@dataclass(frozen=True, slots=True)
class LeaseHeld:
    """A lease that was not given: who has it."""

    by: str


class Lease:
    """The lease of one job. Methods raise redis.RedisError; each is one atomic step."""

    def __init__(self, client: redis.Redis, keys: Keys, job: str, ttl_ms: int) -> None:
        self._client = client
        self._keys = keys
        self._job = job
        self._ttl_ms = ttl_ms
        # The random part tells containers apart that share name and process number.
        self.owner = f"{socket.gethostname()}:{os.getpid()}:{token_hex(3)}"
        self._acquire = client.register_script(lua_source("acquire.lua"))
        self._renew = client.register_script(lua_source("renew.lua"))

    def acquire(
        self, log_id: str, first_cut: Cut, is_rolled_back: bool = False
    ) -> LeaseGrant | LeaseHeld:
        """Take the lease under a new term, unless another holder is alive.

        ``first_cut`` is where a job starts that has never published from this log.
        ``is_rolled_back`` begins a new epoch: offsets that were seen before may come
        again with another content.
        """
        keys, job = self._keys, self._job
        server = self._client.info("server")["run_id"]
        reply = self._acquire(
            keys=[
                keys.meta,
                keys.lease(job),
                keys.last,
                keys.windows,
                keys.ledger(job),
                keys.batches(job),
                keys.groups,
                keys.days_so_far,
            ],
            args=[
                job,
                self.owner,
                self._ttl_ms,
                log_id,
                orjson.dumps(first_cut.to_offset()),
                server,
                token_hex(4),
                int(is_rolled_back),
                FORM,
            ],
        )
        if not reply[0]:
            return LeaseHeld(owner_of(reply[1]))
        term, cut, epoch, since = reply
        go_on, begun = (Cut.from_offset(orjson.loads(one)) for one in (cut, since))
        return LeaseGrant(term, go_on, epoch.decode(), begun)

    def holder(self) -> str | None:
        """Return who holds the lease now, None if nobody does."""
        value = cast("bytes | None", self._client.get(self._keys.lease(self._job)))
        return None if value is None else owner_of(value)

    def renew(self, term: int) -> bool:
        """Hold on to the lease; False if another job has taken over."""
        return self._hold(term, self._ttl_ms)

    def release(self, term: int) -> None:
        """Give the lease back, so that the next job need not wait for its end."""
        self._hold(term, 0)

    def _hold(self, term: int, ttl_ms: int) -> bool:
        keys = [self._keys.meta, self._keys.lease(self._job)]
        return bool(self._renew(keys=keys, args=[self._job, term, self.owner, ttl_ms]))


class NameLease(Lease):
    """A lease of a name that is no job: one process of the name works, others wait.

    It is kept and given back as a job's is; it begins no stream and no books.
    """

    def __init__(self, client: redis.Redis, keys: Keys, name: str, ttl_ms: int) -> None:
        super().__init__(client, keys, name, ttl_ms)
        self._take = client.register_script(lua_source("take.lua"))

    def take(self) -> int | LeaseHeld:
        """Take the lease under a new term, unless another holder is alive."""
        keys = [self._keys.meta, self._keys.lease(self._job)]
        reply = self._take(keys=keys, args=[self._job, self.owner, self._ttl_ms])
        return int(reply[0]) if reply[0] else LeaseHeld(owner_of(reply[1]))


class _Renewal(ABC):
    """Renews something in the background, until closed. A context manager."""

    def __init__(self, name: str, ttl_ms: int) -> None:
        self._pause_s = ttl_ms / 1000 / RENEWALS_PER_TTL
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give it back, if it was begun; a second time does nothing."""
        if not self._closing.is_set():
            self._closing.set()
            if self._thread.ident is not None:
                self._thread.join()
                # Nobody can be asked while Redis is away: it runs out by itself.
                with suppress(redis.RedisError):
                    self._give_back()

    @abstractmethod
    def _run(self) -> None: ...

    @abstractmethod
    def _give_back(self) -> None: ...


class Keeper(_Renewal):
    """Renews a lease in the background, until closed. A context manager.

    ``is_fenced`` tells that another job has taken over; ``outage`` is told when Redis
    is away.
    """

    def __init__(self, lease: Lease, term: int, ttl_ms: int, outage: OutageLog) -> None:
        super().__init__("lease", ttl_ms)
        self._lease = lease
        self._outage = outage
        self._term = term
        self.is_fenced = False

    def _give_back(self) -> None:
        if not self.is_fenced:
            self._lease.release(self._term)
            self._outage.answered("lease")

    def _run(self) -> None:
        while not self._closing.wait(self._pause_s):
            try:
                if not self._lease.renew(self._term):
                    self.is_fenced = True
                    return
                self._outage.answered("lease")
            except redis.RedisError as error:
                self._outage.failed("lease", error)


class Candidacy(_Renewal):
    """Says that a job is about to publish, from its start to its first window.

    A field of ``Keys.meta``, good for ``ttl_ms`` and renewed until closed. A context
    manager. Nothing depends on it but what operators are shown: errors of Redis are
    told by whoever needs an answer.
    """

    def __init__(
        self, client: redis.Redis, keys: Keys, job: str, owner: str, ttl_ms: int
    ) -> None:
        super().__init__("candidacy", ttl_ms)
        self._client = client
        self._key, self._field = keys.meta, candidate_field(job)
        self._owner = owner
        self._ttl_ms = ttl_ms

    def _give_back(self) -> None:
        self._client.hdel(self._key, self._field)

    def _run(self) -> None:
        while True:
            # After an error it is tried again.
            with suppress(redis.RedisError):
                seconds, micros = self._client.time()
                until_ms = seconds * 1_000 + micros // 1_000 + self._ttl_ms
                value = encode_candidate(self._owner, until_ms)
                self._client.hset(self._key, self._field, value)
            if self._closing.wait(self._pause_s):
                return


def owner_of(lease: bytes) -> str:
    """Return the owner that a stored lease names, ``<term> <owner>``."""
    return lease.decode().partition(" ")[2]


def term_of(lease: bytes | None, owner: str) -> int:
    """Return the term of a stored lease, 0 if it is not the owner's."""
    term, _, holder = (lease or b"").decode().partition(" ")
    return int(term) if holder == owner else 0


def lua_source(name: str) -> str:
    """Return the text of a script of this room."""
    return files("throttle.lease").joinpath(name).read_text("utf-8")
