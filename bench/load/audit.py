"""What was published, compared with the trade log itself."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import redis

from bench.load.books import movement
from bench.load.deployment import Deployment
from bench.load.following import Follower
from bench.load.logged import (
    LoggedWindow,
    Unreadable,
    windows_in_kafka,
    windows_in_redis,
)
from bench.load.oracle import Expected, Oracle, Order
from bench.load.published import Held, PublishedRun, texts, unknown_firsts
from bench.load.results import Audit
from bench.load.standing import Standing
from ingest.collector import no_collection
from ingest.kafka_address import KafkaTopic
from ingest.log import LogUnusable
from ingest.masking import server_address
from ingest.trade import Trade
from throttle.ledger import BatchEntry, Ledger
from throttle.snapshot import Row

SHOWN = 20
"""How many differences are told in words; all are counted."""

TRIMMED = "their trades are no longer in the log"


@dataclass(frozen=True, slots=True)
class Audited:
    """An audit, and by offset when the news of each published row entered the log."""

    audit: Audit
    firsts: Mapping[int, Sequence[float]] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Rules:
    """What decides a window's content besides its trades."""

    window_ms: int
    max_ahead_ms: int


def audit(deployment: Deployment, follower: Follower, until: Ledger) -> Audited:
    """Audit a deployment from where it was followed to a ledger of the run's end.

    ``follower`` has to have every window up to there.
    """
    start, run, ingest = follower.start, follower.run, deployment.ingest
    rules = Rules(deployment.window_ms, deployment.max_ahead_ms)
    try:
        topic = ingest.topic()
    except LogUnusable as error:
        return _failed(str(error))
    if topic is not None:
        return audit_kafka(topic, start, until, run, follower.batches, rules)
    return audit_redis(ingest.redis_url, ingest.namespace, start, until, run, rules)


def audit_redis(
    url: str,
    namespace: str,
    start: Standing,
    until: Ledger,
    run: PublishedRun,
    rules: Rules,
) -> Audited:
    """Read a log in Redis again, from a run's start to a ledger of its end; compare."""
    try:
        windows = windows_in_redis(
            url, namespace, start.cut, until.upto.end_ms, rules.window_ms
        )
        return compare(windows, start, until, run, rules)
    except redis.RedisError as error:
        return _failed(f"redis_url {server_address(url)}: {error}")


def audit_kafka(
    topic: KafkaTopic,
    start: Standing,
    until: Ledger,
    run: PublishedRun,
    batches: Sequence[BatchEntry],
    rules: Rules,
) -> Audited:
    """Read a topic again, from a run's start to a ledger of its end, and compare.

    ``batches`` are those of the run: their cuts decide which trades are in them.
    """
    read = [batch for batch in batches if batch.end.end_ms <= until.upto.end_ms]
    try:
        windows = windows_in_kafka(topic, start.cut, read, rules.window_ms)
        return compare(windows, start, until, run, rules)
    except Unreadable as error:
        return _failed(str(error))


def compare(
    windows: Iterable[LoggedWindow],
    start: Standing,
    until: Ledger,
    run: PublishedRun,
    rules: Rules,
) -> Audited:
    """Compare all windows of the log with what was published, and the books with both.

    Where other jobs publish into the stream, a window's content depends on them: then
    nothing is compared, and a note says so.
    """
    if start.others:
        others = ", ".join(start.others)
        note = f"nothing was compared: {others} publish into the stream, too"
        return Audited(Audit(0, 0, 0, (), notes=(note,)), {})
    known = {isin: _order(version) for isin, version in start.versions.items()}
    comparison = _Comparison(run, Oracle(rules.max_ahead_ms, known))
    # What is read for a window is dropped with it, and nothing of it is a cycle.
    with no_collection():
        for window in windows:
            comparison.look_at(window)
    return comparison.finish(start, until, rules.window_ms)


def differences_between(
    row: Row, expected: Expected
) -> Iterable[tuple[str, object, object]]:
    """Yield what of a published row is not as expected: name, published, expected."""
    fields = texts(row.body)
    wanted = orjson.loads(expected.payload)
    if fields != wanted:
        # Not of the usual form: numbers as text, or price and size as numbers.
        trade = Trade.from_wire(expected.payload)
        wanted = {
            "isin": trade.isin,
            "time": trade.time_us,
            "seq": trade.seq,
            "price": trade.price,
            "size": trade.size,
            **trade.extra,
        }
        for name in {**wanted, **fields}:
            found, right = fields.get(name, "nothing"), wanted.get(name, "nothing")
            if found != right:
                yield name, found, right
    if row.version != _version(expected.order):
        yield "version", row.version.decode(), _version(expected.order).decode()
    if row.trades != expected.trades:
        yield "trades", row.trades, expected.trades


class _Comparison:
    """Goes through a run's windows once, oldest first."""

    def __init__(self, run: PublishedRun, oracle: Oracle) -> None:
        self._oracle = oracle
        self._found: list[str] = []
        self._count = 0
        self._left_out = 0
        self._compared = 0
        self._rows = 0
        self._firsts: dict[int, array[float]] = {}
        self._held: dict[int, Held] = {}
        self._ends: list[int] = []
        for held in run.windows:
            if held.end_ms in self._held:
                self._tell(f"window {held.end_ms}: was published twice")
            self._held[held.end_ms] = held

    def look_at(self, window: LoggedWindow) -> None:
        """Compare one window; its successor comes next."""
        held = self._held.get(window.end_ms)
        self._ends.append(window.end_ms)
        if not window.is_complete:
            self._leave_out(held)
            return
        expected = self._oracle.window(window.pieces, window.last_ms)
        self._compared += 1
        if held is None:
            words = f"its {len(expected)} items are" if expected else "it is"
            self._tell(f"window {window.end_ms}: {words} missing")
            return
        rows = held.rows()
        self._rows += len(rows)
        firsts, seen = unknown_firsts(len(rows)), set[str]()
        for place, row in enumerate(rows):
            place_of = f"window {held.end_ms}, {row.isin}"
            wanted = expected.get(row.isin)
            if row.isin in seen:
                self._tell(f"{place_of}: is in it twice")
            elif wanted is None:
                self._tell(f"{place_of}: was published, by the log there is no news")
            else:
                firsts[place] = wanted.first_ms
                self._check_row(place_of, row, wanted)
            seen.add(row.isin)
        for isin in expected.keys() - seen:
            trade = expected[isin]
            self._tell(
                f"window {held.end_ms}, {isin}: is missing, by the log it is "
                f"{_told(trade.payload)}"
            )
        self._firsts[held.offset] = firsts

    def finish(self, start: Standing, until: Ledger, window_ms: int) -> Audited:
        """Compare the books with what was found, and the windows' ends with the run."""
        due = range(start.cut.end_ms + window_ms, until.upto.end_ms + 1, window_ms)
        if self._ends != list(due):
            self._tell(
                f"the batches of the run hold {len(self._ends)} windows, "
                f"{len(due)} were due up to {until.upto.end_ms}"
            )
        for end_ms in sorted(self._held.keys() - set(due)):
            # Later ones were published since the books were read.
            if end_ms <= until.upto.end_ms:
                self._tell(f"window {end_ms}: was published, but is none of the run")
        notes = []
        if self._left_out:
            notes.append(f"windows that were not compared: {self._left_out}, {TRIMMED}")
        else:
            self._check_books(start, until)
        oracle = self._oracle
        audit = Audit(
            oracle.read, self._compared, oracle.issues, self._found, self._count, notes
        )
        return Audited(audit, self._firsts)

    def _leave_out(self, held: Held | None) -> None:
        self._left_out += 1
        for row in held.rows() if held is not None else ():
            self._oracle.learn(row.isin, _order(row.version))

    def _check_row(self, place_of: str, row: Row, expected: Expected) -> None:
        wrong = list(differences_between(row, expected))
        if wrong:
            told = ", ".join(f"{name} {one} for {two}" for name, one, two in wrong)
            self._tell(f"{place_of}: was published with {told}")

    def _check_books(self, start: Standing, until: Ledger) -> None:
        moved, oracle = movement(start.ledger, until), self._oracle
        for name, found, right in (
            ("trades read", moved.read, oracle.read),
            ("trades published", moved.published, self._rows),
            ("trades superseded", moved.superseded, oracle.superseded),
            ("stale trades", moved.stale, oracle.stale),
            ("windows", moved.windows, self._compared),
        ):
            if found != right:
                self._tell(f"books: {found} {name}, by the log {right}")
        for reason in sorted({*moved.refused, *oracle.refused}):
            found, right = moved.refused.get(reason, 0), oracle.refused[reason]
            if found != right:
                self._tell(f"books: {found} refused as {reason}, by the log {right}")

    def _tell(self, difference: str) -> None:
        self._count += 1
        if len(self._found) < SHOWN:
            self._found.append(difference)


def _failed(reason: str) -> Audited:
    words = f"the log could not be read again: {reason}"
    return Audited(Audit(0, 0, 0, (words,), 1), {})


def _version(order: Order) -> bytes:
    return b"%016d%019d%019d" % order


def _order(version: bytes) -> Order:
    return int(version[:16]), int(version[16:35]), int(version[35:])


def _told(payload: bytes) -> str:
    fields: dict[str, Any] = orjson.loads(payload)
    names = ("time", "seq", "price", "size")
    return ", ".join(f"{name} {fields.get(name)}" for name in names)
