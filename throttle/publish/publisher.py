"""One atomic publish of a batch: its windows, its refused trades and its books."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import orjson
import redis
import structlog

from ingest.issue_table.known_issues import MARKET, SECTOR
from ingest.redis_keys import Keys
from ingest.tradelog.contract import LogKind
from throttle.contract.dead_letter import letter_id
from throttle.contract.group import Group
from throttle.contract.ledger import Ledger
from throttle.lease.lease import Fenced
from throttle.publish.shown_versions import ShownVersions
from throttle.window.batch import Batch
from throttle.window.group_rows import BatchGroups, Place

log = structlog.get_logger()


_NO_GROUPS = BatchGroups((), ())


class StreamLost(RuntimeError):
    """The published stream is gone, or older than what this job has published."""


@dataclass(frozen=True, slots=True)
class PublishOutcome:
    """What a publish did; ``windows`` is 0 when it was a repeat.

    ``off_by`` counts the trades by which the ledger does not balance: 0, always.
    """

    epoch: str
    offset: int
    windows: int
    rows: int
    stale: int
    off_by: int


REPEATED = PublishOutcome("", 0, 0, 0, 0, 0)


DEAD_LETTERS = 10_000
"""Refused trades kept per partition of the log; one has at most 4 KiB."""


@dataclass(frozen=True, slots=True)
class PublishOptions:
    """How a job publishes: under which name, and how much Redis keeps."""

    job: str
    window_ms: int
    window_log: int
    log: LogKind = "redis"
    dead_letters: int = DEAD_LETTERS


class Publisher:
    """Writes batches to Redis under one term; publishing one twice changes nothing."""

    def __init__(
        self, client: redis.Redis, keys: Keys, options: PublishOptions, term: int
    ) -> None:
        self._client = client
        self._keys = keys
        self._options = options
        self._term = term
        self._shown = ShownVersions(client, keys.last)
        # Places of markets are sent only if somebody listens to a market's channel.
        self._has_listeners = False
        script = files("throttle.publish").joinpath("publisher.lua").read_text("utf-8")
        self._publish = client.register_script(script)

    def publish(self, batch: Batch, batch_id: int) -> PublishOutcome:
        """Store windows, dead letters and books in one atomic step.

        Raises Fenced when another job of this name has taken over, StreamLost when
        the batch does not begin where the job's last one ended, and redis.RedisError,
        after which the batch may be published again.
        """
        job = self._options.job
        # Without groups nobody needs to know.
        stale = self._shown.stale(batch) if batch.groups else frozenset[Place]()
        while True:
            status, *values = self._call(batch, batch_id, stale)
            if status == b"listened":
                self._has_listeners = True
                continue
            if status != b"stale":
                break
            # Groups are of what is published. Others publish the same issues, and
            # versions only grow: this ends.
            ends_ms = map(int, values[::2])
            isins = (isin.decode() for isin in values[1::2])
            stale = frozenset(zip(ends_ms, isins, strict=True))
        if status == b"fenced":
            raise Fenced(
                f"fenced: another job named {job!r} has taken over "
                f"(its term is {values[0]}, this one's {self._term})"
            )
        if status == b"lost":
            raise StreamLost(
                "the stream was emptied or rolled back, or its server was started again"
            )
        if status == b"repeat":
            return REPEATED
        epoch, offset, windows, rows, old, listeners, stored = values
        self._has_listeners = listeners > 0
        if batch.groups is not None:
            self._shown.learn()
        ledger = Ledger.decode(job, dict(zip(stored[::2], stored[1::2], strict=True)))
        off_by = 0 if ledger is None else ledger.off_by
        return PublishOutcome(epoch.decode(), offset, windows, rows, old, off_by)

    def _call(self, batch: Batch, batch_id: int, stale: frozenset[Place]) -> Any:
        keys, job = self._keys, self._options.job
        return self._publish(
            keys=[
                keys.meta,
                keys.last,
                keys.windows,
                keys.ledger(job),
                keys.batches(job),
                keys.groups,
                *(f"{keys.dead(job)}:{p}" for p in batch.end.partitions),
            ],
            args=self._arguments(batch, batch_id, stale),
        )

    def _arguments(
        self, batch: Batch, batch_id: int, stale: frozenset[Place]
    ) -> list[Any]:
        partitions = batch.end.partitions
        arguments: list[Any] = [
            self._keys.updates,
            self._options.job,
            self._term,
            orjson.dumps(batch.start.to_offset()),
            orjson.dumps(batch.end.to_offset()),
            self._options.window_ms,
            self._options.window_log,
            batch_id,
            len(batch.counts),
            len(batch.windows),
            batch.end.issues,
            batch.issues.issues.digest if batch.end.issues else "",
            _encode_stale(batch, stale),
        ]
        rows = batch.groups
        groups = _NO_GROUPS if rows is None else rows.groups(stale)
        markets = [] if rows is None else rows.markets
        places = {name: n for n, name in enumerate(markets)}
        has_places = self._has_listeners
        arguments += [len(places), *places, *_named(batch), int(has_places)]
        codes = {}
        if has_places and rows is not None:
            of_issues = rows.market_of_issue().items()
            codes = {isin: f"{places[name]:05}" for isin, name in of_issues}
        for number, window in enumerate(batch.windows):
            ordered = [window.of_partition(p) for p in partitions]
            arguments.append(window.end_ms)
            arguments += [len(of_one) for of_one in ordered]
            coded = ordered if codes else ()
            arguments.append("".join(codes[row.isin] for o in coded for row in o))
            arguments += _placed(groups.windows[number] if rows else (), places)
            arguments += [row.encode() for of_one in ordered for row in of_one]
        if len(batch.windows) > 1:
            arguments += _placed(groups.together, places)
        for p, count in zip(partitions, batch.counts, strict=True):
            log_count = batch.end.count(p)
            arguments += [p, count.read, count.superseded, count.blanks]
            arguments += [count.unkept, count.extra, count.unknown_issue]
            arguments.append(-1 if log_count is None else log_count)
            arguments.append(len(count.refused))
            for reason, refused in count.refused.items():
                arguments += [reason, refused]
            arguments.append(len(count.skipped))
            for name, skipped in count.skipped.items():
                arguments += [name, skipped]
        arguments += [self._options.dead_letters, len(batch.dead_letters)]
        for letter in batch.dead_letters:
            place = partitions.index(letter.partition)
            arguments += [place, letter_id(letter.position, self._options.log)]
            arguments += [letter.append_ms, letter.reason, letter.error, letter.payload]
            arguments += [letter.size, letter.sha256 or ""]
        return arguments


def _encode_stale(batch: Batch, stale: frozenset[Place]) -> str:
    """Name the rows that groups leave out, in the script's order; ``*``: any."""
    if batch.groups is None:
        return "*"
    return " ".join(
        f"{window.end_ms} {row.isin}"
        for window in (batch.windows if stale else ())
        for partition in batch.end.partitions
        for row in window.of_partition(partition)
        if (window.end_ms, row.isin) in stale
    )


def _named(batch: Batch) -> list[Any]:
    """Return how many groups the issue table names, and their fields.

    -1 as long as it is the table of the batch before.
    """
    if batch.start.issues == batch.end.issues:
        return [-1]
    issues = batch.issues.issues
    names = [MARKET + name for name in ("", *issues.markets)]
    names += [SECTOR + name for name in ("", *issues.sectors)]
    return [len(names), *names] if issues.version else [0]


def _placed(groups: Sequence[Group], places: Mapping[str, int]) -> list[Any]:
    """Return how many groups there are, and of each its field, market and body."""
    arguments: list[Any] = [len(groups)]
    for group in groups:
        place = -1
        if group.field.startswith(MARKET):
            place = places[group.field.removeprefix(MARKET)]
        arguments += [group.field, place, group.body]
    return arguments
