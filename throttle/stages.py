"""Leaves in Redis where the time of the newest batch went, for whoever asks.

In a thread of its own and with short deadlines: no batch waits for it, and nothing
fails when Redis is away. What was not written is replaced by what is newer.
"""

import threading
from collections.abc import Mapping
from itertools import chain
from typing import Self

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from throttle.report import BatchReport

_ANSWER_WITHIN_S = 1.0
_LOOK_EVERY_S = 0.05

Fields = Mapping[str, str]


def stage_fields(report: BatchReport, spark_s: Mapping[str, float]) -> Fields:
    """Return the hash ``Keys.stages`` of a batch: its number, window and stages."""
    stages = {**report.stages_s, **spark_s}
    return {
        "batch": str(report.batch_id),
        "window": str(report.batch.end.end_ms),
        **{f"{name}_ms": str(round(s * 1000)) for name, s in stages.items()},
    }


class StageLog:
    """Writes the newest batch's stages, until closed. A context manager."""

    def __init__(self, redis_url: str, key: str) -> None:
        self._client = redis.Redis.from_url(
            redis_url,
            socket_timeout=_ANSWER_WITHIN_S,
            socket_connect_timeout=_ANSWER_WITHIN_S,
            retry=Retry(NoBackoff(), 0),
        )
        self._key = key
        self._newest: Fields | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stages", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join()
        self._client.close()

    def write(self, fields: Fields) -> None:
        """Have them written soon."""
        self._newest = fields

    def _run(self) -> None:
        while not self._closing.wait(_LOOK_EVERY_S):
            fields, self._newest = self._newest, None
            if fields is None:
                continue
            try:
                with self._client.pipeline(transaction=True) as pipe:
                    pipe.delete(self._key)
                    pipe.hset(self._key, items=list(chain(*fields.items())))
                    pipe.execute()
            except redis.RedisError:
                # The next batch has newer ones.
                continue
