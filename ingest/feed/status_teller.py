"""Adds to Redis what a feed hears of statuses; the feed goes on without it."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis
import structlog

from ingest.feed.telling import telling
from ingest.process.redis_fault import in_words
from ingest.settings import IngestSettings
from ingest.statuses.status_log import RULES, StatusLog, read_reply
from ingest.statuses.status_news import StatusNews
from ingest.tradelog.contract import LogUnusable
from tickthrottle_client.log_v1 import decode_info, info_key
from tickthrottle_client.redis_primary import connect

LOOK_S = 0.5
"""How soon the end of a feed is seen."""

AGAIN_S = 1.0
"""How soon a status is tried again that Redis did not take."""

log = structlog.get_logger()


@contextmanager
def telling_statuses(settings: IngestSettings, news: StatusNews) -> Iterator[None]:
    """Add what is noted within the block, in a thread of its own, in order.

    While Redis is away statuses wait and are sent again: none is doubled by that. At
    the end of the block each is tried once more.
    """
    with telling(_StatusTeller(settings, news).run, "statuses"):
        yield


class _StatusTeller:
    def __init__(self, settings: IngestSettings, news: StatusNews) -> None:
        self._settings, self._news = settings, news
        self._log: StatusLog | None = None
        self._is_away = False
        self._left_out = 0
        self._refused: set[str] = set()

    def run(self, ended: threading.Event) -> None:
        with connect(self._settings.redis_url, socket_timeout=3) as client:
            while True:
                # Read before: what was noted before the end is told.
                is_over = ended.is_set()
                status = self._news.wait(0 if is_over else LOOK_S)
                if status is None:
                    if is_over:
                        return
                    continue
                try:
                    reply = self._open(client).add(status, time.time_ns() // 1_000)
                except (redis.RedisError, LogUnusable, OSError) as error:
                    self._say_away(error)
                    if is_over:
                        return
                    ended.wait(AGAIN_S)
                    continue
                self._say_back()
                self._news.told(status)
                self._say_refused(*read_reply(reply), status.isin)

    def _open(self, client: redis.Redis) -> StatusLog:
        if self._log is None:
            namespace, partitions = self._settings.namespace, 0
            if self._settings.trade_log == "redis":
                info: Any = client.hgetall(info_key(namespace))
                partitions = decode_info(info).partitions if info else 0
            self._log = StatusLog(client, namespace, partitions)
        return self._log

    def _say_away(self, error: Exception) -> None:
        # Another server may hold another log.
        self._log = None
        if not self._is_away:
            log.warning("statuses wait: Redis takes none", error=in_words(error))
        self._is_away = True

    def _say_back(self) -> None:
        if self._is_away:
            log.info("statuses are told again")
        self._is_away = False
        if self._news.left_out > self._left_out:
            log.warning("statuses were left out", statuses=self._news.left_out)
            self._left_out = self._news.left_out

    def _say_refused(self, outcome: Any, _number: int, isin: str) -> None:
        rule = RULES.get(outcome)
        if rule is not None and outcome.value not in self._refused:
            self._refused.add(outcome.value)
            log.warning("a status was refused", isin=isin, rule=rule)
