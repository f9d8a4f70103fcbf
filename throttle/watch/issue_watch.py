"""Follows the issue table for a job: which one the next batch is joined with."""

import threading
from collections.abc import Callable
from typing import Self

import redis
import structlog

from ingest.issue_table.issue_store import IssueStore, TableAway
from ingest.issue_table.known_issues import Issues
from ingest.issue_table.table_loader import read_on
from ingest.process.outage_reasons import OutageReasons
from ingest.process.redis_fault import in_words
from ingest.tradelog.contract import LogUnusable

LOOK_S = 0.5
"""How often the table is looked at."""

PATIENCE_S = 0.1
"""How long the plan of a batch waits for the newest table; its window is open still."""

FIRST_PATIENCE_S = 10.0
"""How long a job waits for the table before its first window: 100,000 issues take 5."""

_AWAY = (TableAway, LogUnusable, redis.RedisError, OSError)

log = structlog.get_logger()


class IssueWatch:
    """Knows the issue table. A context manager: it reads in a thread of its own.

    No batch ever waits long: while the table's server is away, or takes its time, the
    table that is known goes on. One that was emptied, or filled anew, takes its place.
    """

    def __init__(self, open_store: Callable[[], IssueStore]) -> None:
        self._open_store = open_store
        self._issues = Issues()
        self._is_away = False
        self._reasons = OutageReasons()
        self._is_closing = False
        self._asked = 0
        self._answered = 0
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="issues", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()

    def newest(self, patience_s: float = PATIENCE_S) -> Issues:
        """Return the table as it is now, or the one known if that takes too long.

        A change that was acknowledged before the call is in it, unless it took longer.
        """
        with self._changed:
            self._asked += 1
            number = self._asked
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._answered >= number, patience_s)
            return self._issues

    def _run(self) -> None:
        try:
            store = self._open_store()
        except LogUnusable as error:
            self._failed(error)
            return
        while self._wait():
            asked = self._asked
            try:
                later, refused = read_on(store, self._issues)
            except _AWAY as error:
                self._failed(error)
                later = self._issues
            else:
                # Asked for here: it is computed once, and no batch waits for it.
                _ = later.digest
                self._answer_came(later, refused)
            with self._changed:
                self._issues, self._answered = later, asked
                self._changed.notify_all()
        store.close()

    def _wait(self) -> bool:
        """Wait until somebody asks, or for some time; False once it is closing."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._is_closing or self._asked > self._answered, LOOK_S
            )
            return not self._is_closing

    def _failed(self, error: Exception) -> None:
        self._is_away = True
        if self._reasons.is_news(in_words(error)):
            log.warning("the issue table is away", error=in_words(error))

    def _answer_came(self, later: Issues, refused: int) -> None:
        if self._is_away:
            log.info("the issue table is back", issues=len(later))
            self._is_away = False
            self._reasons.end()
        if refused:
            log.warning("changes of the issue table are no issues", changes=refused)
        if later is not self._issues:
            log.info("issue table", issues=len(later), version=later.version)
