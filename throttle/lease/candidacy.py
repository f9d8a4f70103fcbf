"""Says that a job is about to publish, from its start to its first window."""

import threading

import redis

from ingest.redis_keys import Keys
from throttle.contract.candidate import candidate_field, encode_candidate
from throttle.lease.lease import RENEWALS_PER_TTL


class Candidacy:
    """A field of ``Keys.meta``, good for ``ttl_ms`` and renewed until closed.

    A context manager.

    Nothing depends on it but what operators are shown: errors of Redis are told by
    whoever needs an answer.
    """

    def __init__(
        self, client: redis.Redis, keys: Keys, job: str, owner: str, ttl_ms: int
    ) -> None:
        self._client = client
        self._key = keys.meta
        self._field = candidate_field(job)
        self._owner = owner
        self._ttl_ms = ttl_ms
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="candidacy", daemon=True)

    def __enter__(self) -> "Candidacy":
        """Say it from now on."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Take it back; a second time does nothing."""
        if self._closing.is_set():
            return
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join()
            try:
                self._client.hdel(self._key, self._field)
            except redis.RedisError:
                # It is soon too old to be taken for one.
                return

    def _run(self) -> None:
        while True:
            try:
                seconds, micros = self._client.time()
                until_ms = seconds * 1_000 + micros // 1_000 + self._ttl_ms
                value = encode_candidate(self._owner, until_ms)
                self._client.hset(self._key, self._field, value)
            except redis.RedisError:
                # Tried again below.
                pass
            if self._closing.wait(self._ttl_ms / 1_000 / RENEWALS_PER_TTL):
                return
