"""One atomic publish of a batch: its windows, its refused trades and its books."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from importlib.resources import files
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import orjson
import redis

from ingest.instrument_table.instrument_entry import InstrumentEntry
from ingest.instrument_table.known_instruments import MARKET, SECTOR
from ingest.redis_keys import Keys
from ingest.series import instrument_of
from ingest.tradelog.contract import LogKind
from throttle.contract.cut import Cut
from throttle.contract.dead_letter import letter_id
from throttle.contract.group import Group
from throttle.contract.ledger import (
    AMOUNTS,
    NOTHING,
    Ledger,
    Turnover,
    encode_amounts,
    stored_amounts,
)
from throttle.contract.row_sums import ONE, RowSums
from throttle.contract.session_calendar import EVERYWHERE, SessionCalendars
from throttle.contract.snapshot import Row
from throttle.lease.lease import Fenced
from throttle.publish.shown_days import BatchDays, ShownDays
from throttle.publish.shown_versions import NoNews, ShownVersions
from throttle.publish.window_chain import ChainedWindows, WindowChain
from throttle.standing.restated import NOTHING_RESTATED, Restated
from throttle.window.batch import Batch, PartitionCount, with_sums_of_rows
from throttle.window.group_rows import BatchGroups, Place

if TYPE_CHECKING:
    # A task of Spark publishes, too: it should not load what checks settings, or logs.
    from throttle.settings import ThrottleSettings
    from throttle.standing.taken_from_batch import TakingBack

_NO_GROUPS = BatchGroups((), ())

RefusalCause = Literal["stream_lost", "read_elsewhere"]
"""Why a job reads a batch again, under a new term."""


class StreamLost(RuntimeError):
    """The published stream is gone, or older than what this job has published."""

    cause: RefusalCause = "stream_lost"


class ReadElsewhere(StreamLost):
    """A batch was read from another server than it was to be published on.

    The stream is as it was; what this server's log holds is to be read.
    """

    cause: RefusalCause = "read_elsewhere"


@dataclass(frozen=True, slots=True)
class PublishOutcome:
    """What a publish did; ``windows`` is 0 when it was a repeat.

    ``off_by`` counts the trades by which the ledger does not balance: 0, always.
    ``counts`` are those of the batch's partitions, with what it takes back.
    """

    epoch: str
    offset: int
    windows: int
    rows: int
    stale: int
    off_by: int
    counts: Sequence[PartitionCount] = ()


REPEATED = PublishOutcome("", 0, 0, 0, 0, 0)

DEAD_LETTERS = 10_000
"""Refused trades kept per partition of the log; one has at most 4 KiB."""


@dataclass(frozen=True, slots=True)
class PublishOptions:
    """How a job publishes: under which name, and how much Redis keeps.

    ``calendars`` say when an instrument's day begins, ``chain_key`` signs the links of
    windows.
    """

    job: str
    window_ms: int
    window_log: int
    log: LogKind = "redis"
    dead_letters: int = DEAD_LETTERS
    calendars: SessionCalendars = EVERYWHERE
    chain_key: bytes = field(default=b"", repr=False)

    @classmethod
    def of(cls, settings: "ThrottleSettings") -> "PublishOptions":
        """Return what the job's settings say."""
        return cls(
            settings.job,
            settings.window_ms,
            settings.window_log,
            settings.trade_log,
            calendars=SessionCalendars.create(*settings.calendars()),
            chain_key=settings.chain_key(),
        )


class Publisher:
    """Writes batches to Redis under one term; publishing one twice changes nothing."""

    def __init__(
        self,
        client: redis.Redis,
        keys: Keys,
        options: PublishOptions,
        term: int,
        standing: "TakingBack | None" = None,
    ) -> None:
        """``standing`` finds what batches take back; without it they take nothing."""
        self._standing = standing
        self._client = client
        self._keys = keys
        self._options = options
        self._term = term
        self._shown = ShownVersions(client, keys.last)
        self._days = ShownDays(client, keys.days_so_far, options.calendars)
        self._known_at: Cut | None = None
        self._chain = WindowChain(client, keys, options.chain_key)
        # Places of markets are sent only if somebody listens to a market's channel.
        self._has_listeners = False
        # Which days go on is compared only if other jobs change them, too.
        self._has_others = False
        script = files("throttle.publish").joinpath("publisher.lua").read_text("utf-8")
        self._publish = client.register_script(script)

    def prepare(self, start: Cut, isins: Set[str]) -> None:
        """Ask what Redis shows of instruments, for the batch that begins at a cut.

        Left out, ``publish`` asks. Raises redis.RedisError.
        """
        self._go_on_from(start)
        self._shown.ask_for(isins)
        self._days.ask_for(isins)

    def _go_on_from(self, start: Cut) -> None:
        # What is known is of one cut. If a batch begins elsewhere, another process of
        # the job has published since.
        if start != self._known_at:
            self._days.forget()
            self._shown.forget()
            self._chain.has_moved()
            self._known_at = start

    def publish(self, batch: Batch, batch_id: int) -> PublishOutcome:
        """Store windows, dead letters and books in one atomic step.

        Raises Fenced when another job of this name has taken over, StreamLost when
        the batch does not begin where the job's last one ended, ReadElsewhere when
        another server has answered for the log, and redis.RedisError or
        LogAway, after which the batch may be published again.
        """
        names, job = self._keys, self._options.job
        taken = None if self._standing is None else self._standing.of(batch)
        restated = NOTHING_RESTATED if taken is None else taken.restated
        batch = batch if taken is None else taken.batch
        keys = [
            *(names.meta, names.last, names.windows, names.ledger(job)),
            *(names.batches(job), names.groups, names.days_so_far),
            *(f"{names.dead(job)}:{p}" for p in batch.end.partitions),
        ]
        self._go_on_from(batch.start)
        if self._has_others and self._chain.has_moved():
            # Asked for first, the batch is seldom sent twice.
            self._shown.forget()
        no_news = self._shown.no_news(batch, restated)
        days = self._days.after(batch, taken)
        if taken is not None:
            batch = replace(batch, servers=taken.servers())
        while True:
            links = self._chain.link(batch, no_news, self._shown.revised)
            args = self._document(batch, batch_id, no_news, days, restated, links)
            status, *values = self._publish(keys=keys, args=args)
            if status == b"listened":
                self._has_listeners = True
            elif status == b"shared":
                self._has_others = True
            elif status == b"moved":
                # Others publish the same instruments, and both only go on: this ends.
                self._days.forget(values[0].decode().split())
                days = self._days.after(batch, taken)
            elif status == b"chained":
                # Whoever else has published may have raised a revision.
                self._chain.at = values[0].decode()
                self._shown.forget()
                no_news = self._shown.no_news(batch, restated)
            elif status == b"stale":
                no_news = NoNews.decode(values[0])
            else:
                break
        if status == b"fenced":
            raise Fenced(
                f"fenced: another job named {job!r} has taken over "
                f"(its term is {values[0]}, this one's {self._term})"
            )
        if status == b"lost":
            raise StreamLost(
                "the stream was emptied or rolled back, or its server was started again"
            )
        if status == b"elsewhere":
            there, here = (value.decode() for value in values)
            raise ReadElsewhere(
                f"the batch was read from another server ({there}, this one is "
                f"{here}): it is read again"
            )
        if status == b"repeat":
            # What is known of them may have it already, or not.
            self._days.forget()
            return REPEATED
        epoch, offset, windows, rows, old, listeners, jobs, stored = values
        self._has_listeners, self._has_others = listeners > 0, jobs > 1
        self._shown.learn()
        self._chain.learn(links)
        self._days.learn(days)
        self._known_at = batch.end
        ledger = Ledger.decode(job, dict(zip(stored[::2], stored[1::2], strict=True)))
        off_by = 0 if ledger is None else ledger.off_by
        where = epoch.decode(), offset, windows
        return PublishOutcome(*where, rows, old, off_by, batch.counts)

    def _document(
        self,
        batch: Batch,
        batch_id: int,
        no_news: NoNews,
        days: BatchDays,
        restated: Mapping[str, Restated],
        links: ChainedWindows,
    ) -> list[bytes]:
        """Return what the script is given: a head that names all, then what is bytes.

        ``publisher.lua`` says what is in it.
        """
        partitions, options, rows = batch.end.partitions, self._options, batch.groups
        ordered = [[w.of_partition(p) for p in partitions] for w in batch.windows]
        of_instruments = batch.sums
        if unshown := no_news.unshown:
            isins = {isin for _, isin in unshown}
            of_instruments = with_sums_of_rows(
                batch.sums, batch.windows, isins, unshown
            )
        sums = [b"%b %b" % (i.encode(), sums) for i, sums in of_instruments.items()]
        others = frozenset(isin for isin, one in restated.items() if not one.is_own)
        late = _late(batch, no_news.stale, others)
        head: dict[str, Any] = {
            "channel": self._keys.updates,
            "job": options.job,
            "term": self._term,
            "servers": sorted(batch.servers),
            "start": orjson.dumps(batch.start.to_offset()).decode(),
            "end": orjson.dumps(batch.end.to_offset()).decode(),
            "window_ms": options.window_ms,
            "window_log": options.window_log,
            "batch": batch_id,
            "instruments": str(batch.end.instruments),
            "instruments_digest": batch.instruments.instruments.digest
            if batch.end.instruments
            else "",
            "chain_at": links.at,
            "chain_end": links.end,
            "chain": links.of_all,
            "markets": [],
            "knows_markets": self._has_listeners,
            "windows": [
                {
                    "end_ms": w.end_ms,
                    "chain": part,
                    "counts": [len(of_one) for of_one in of_window],
                    "starting": days.starting_with(w.end_ms),
                }
                for w, of_window, part in zip(
                    batch.windows, ordered, links.parts, strict=True
                )
            ],
            "partitions": [
                _encode_count(p, batch.end.count(p), count, late.get(p, NOTHING))
                for p, count in zip(partitions, batch.counts, strict=True)
            ],
            "no_news": no_news.encode(batch),
            "sums": len(sums),
            "days": len(days),
            "letters_kept": options.dead_letters,
            "letters": [
                {
                    "partition": partitions.index(letter.partition) + 1,
                    "id": letter_id(letter.position, options.log),
                    "appended": letter.append_ms,
                    "reason": letter.reason,
                    "error": letter.error,
                    "bytes": letter.size,
                    "sha256": letter.sha256 or "",
                }
                for letter in batch.dead_letters
            ],
        }
        if self._has_others:
            head["days_before"] = days.before()
        if restated:
            head["restated"] = {
                isin: {"own": one.is_own, "gone": [v.decode() for v in one.gone]}
                for isin, one in restated.items()
            }
        if batch.start.instruments != batch.end.instruments:
            head["named"] = _fields(batch)
        markets: dict[str, str] = {}
        if rows is not None:
            table = batch.instruments.instruments
            of_restated = {
                isin: _market(table.get(isin)) for isin in map(instrument_of, restated)
            }
            head["markets"] = sorted({*rows.markets, *of_restated.values()})
            if self._has_listeners:
                markets = of_restated | rows.market_of_instrument()
        places = {MARKET + name: n for n, name in enumerate(head["markets"], 1)}
        groups = _NO_GROUPS if rows is None else rows.groups(*no_news)
        of_windows = groups.windows or [()] * len(batch.windows)
        for window, of_window, own in zip(
            head["windows"], ordered, of_windows, strict=True
        ):
            window["groups"] = _placed(own, places)
            lines = chain.from_iterable(of_window if markets else ())
            window["markets"] = [
                places[MARKET + markets[instrument_of(r.isin)]] for r in lines
            ]
        head["together"] = _placed(groups.together, places)
        several = groups.together if len(batch.windows) > 1 else ()
        return [
            orjson.dumps(head),
            *_encode_rows(batch, ordered, no_news.stale),
            *(group.body for group in (*chain.from_iterable(of_windows), *several)),
            *sums,
            *days.encode(),
            *(letter.payload for letter in batch.dead_letters),
        ]


def _encode_count(
    partition: int, log_count: int | None, count: PartitionCount, late: Turnover
) -> dict[str, Any]:
    names = "read", "superseded", "not_last"
    traded = {name: count.traded.get(name, NOTHING) for name in names}
    shown = count.traded.get("shown", NOTHING)
    traded |= {"published": shown.minus(late), "stale": late}
    amounts = {
        amount: {name: getattr(of_it, amount) for name, of_it in traded.items()}
        for amount in AMOUNTS
    }
    counted = (of.name for of in fields(count) if of.name != "traded")
    counts = {name: getattr(count, name) for name in counted}
    encoded = {
        "number": partition,
        "books": counts | encode_amounts(amounts),
        "amounts": stored_amounts(amounts),
    }
    return encoded if log_count is None else {**encoded, "log": log_count}


def _market(entry: InstrumentEntry | None) -> str:
    return "" if entry is None else entry.market or ""


def _late(
    batch: Batch, stale: frozenset[Place], others: frozenset[str]
) -> dict[int, Turnover]:
    """Return what the trades of stale rows come to themselves, by partition.

    In the last window ``others`` show a trade that is not of it.
    """
    windows = {window.end_ms: window for window in batch.windows}
    late: dict[int, Turnover] = {}
    for end_ms, isin in stale:
        if isin in others and end_ms == batch.end.end_ms:
            continue
        partition, row = windows[end_ms].rows[isin]
        own = RowSums.decode(ONE, row.body).amounts
        if own is not None:
            before = late.get(partition, NOTHING)
            late[partition] = before.plus(own.volume, own.value)
    return late


def _encode_rows(
    batch: Batch, ordered: Sequence[Sequence[Sequence[Row]]], stale: frozenset[Place]
) -> Iterator[bytes]:
    """Yield the line of every row; a stale one restates what is shown."""
    for window, of_window in zip(batch.windows, ordered, strict=True):
        for row in chain.from_iterable(of_window):
            if stale and (window.end_ms, row.isin) in stale:
                # In full: its sums are not those of the trade that is shown.
                row = row._replace(sums=row.row_sums.encode())
            yield row.encode()


def _fields(batch: Batch) -> list[str]:
    instruments = batch.instruments.instruments
    if not instruments.version:
        return []
    return [
        *(MARKET, SECTOR, *instruments.groups),
    ]


def _placed(
    groups: Sequence[Group], places: Mapping[str, int]
) -> list[tuple[str, int]]:
    """Return of each group its field and its market's place, 0 for a sector."""
    return [(group.field, places.get(group.field, 0)) for group in groups]
