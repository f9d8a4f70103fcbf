"""The throttle without Spark, driven through anything that may happen to it.

Hypothesis makes up a log, its windows, repeats, restarts, zombies, a server that is
emptied, restarted or restored from an old dump; a model in plain Python says what must
have been published.
"""

from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
import redis
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ingest.trade import InvalidTrade, Trade, check_not_ahead
from ingest.tradelog.contract import Chunk
from tests.examples import many
from tests.published import read_snapshots
from tests.throttle.conflated import as_conflated
from tests.throttle.payloads import ISINS, NOW_MS
from tests.throttle.publishing import (
    KEYS,
    batches_of,
    dump_all,
    last_value,
    ledger_of,
)
from throttle.contract.cut import Cut, window_time_ms
from throttle.contract.ledger import NOTHING, Books, add_up
from throttle.contract.row_sums import ONE, Amounts, RowSums
from throttle.contract.snapshot import Row
from throttle.contract.trade_order import encode_version
from throttle.lease.lease import Fenced, Lease, LeaseGrant
from throttle.publish.publisher import REPEATED, Publisher, PublishOptions, StreamLost
from throttle.window.batch import Batch, assemble
from throttle.window.checked_rows import trade_rows
from throttle.window.combine import combine
from throttle.window.control_rows import cut_row, read_row
from throttle.window.turnover import of_all
from tickthrottle_client.log_v1 import position_of
from tickthrottle_client.updates_v1 import ALL

pytestmark = pytest.mark.redis

W = 1_000
PARTITIONS = 2
MAX_AHEAD_MS = 5_000
OPTIONS = PublishOptions("job", W, window_log=1_000_000, dead_letters=1_000_000)

Entry = tuple[int, int, bytes]
"""Position, append time, payload."""


Append = tuple[int, str, tuple[int, int], int, int, str]
"""Partition, ISIN, version, how late it is, how much time has passed, form."""

IN_PART = ("none", "volume", "range,volume", "last", "last,volume")
"""What a trade counts for, as a form."""

appends = st.tuples(
    st.integers(0, PARTITIONS - 1),
    st.sampled_from(ISINS[:3]),
    st.tuples(st.integers(0, 3), st.integers(0, 2)),
    st.sampled_from([0, 0, 1, W, 3 * W]),
    st.sampled_from([0, 1, W // 2, W]),
    st.sampled_from(["wire"] * 6 + ["spaced", "bad", "future", *IN_PART]),
)


def make_payload(isin: str, version: tuple[int, int], number: int, form: str) -> bytes:
    """Make the payload of a trade, or of something that was meant to be one."""
    time_us = NOW_MS * 1000 + version[0] + (10**12 if form == "future" else 0)
    extra = {"updates": form} if form in IN_PART else {}
    payload = Trade(isin, time_us, version[1], f"{number}.50", "1", extra).to_wire()
    if form == "spaced":
        return payload.replace(b",", b" , ")
    return payload[:-1] if form == "bad" else payload


@dataclass
class Server:
    """What the server holds, by the model: the log, the stream, the job's progress."""

    log_id: str
    log: list[list[Entry]] = field(default_factory=lambda: [[], []])
    windows: list[tuple[str, int, dict[str, Row]]] = field(default_factory=list)
    last: dict[str, Row] = field(default_factory=dict)
    books: Counter[str] = field(default_factory=Counter)
    cut: Cut | None = None
    term: int = 0
    is_new_run: bool = False


def judge(entry: Entry) -> Trade | None:
    """Return an entry's trade, None if the rules refuse it."""
    _, append_ms, payload = entry
    try:
        trade = Trade.from_wire(payload)
        check_not_ahead(trade, append_ms * 1000, MAX_AHEAD_MS * 1000)
    except InvalidTrade:
        return None
    return trade


def exact(row: Row) -> tuple[bytes, RowSums, bytes]:
    """Return what a row says, whether its sums are in full or not."""
    return row.version, row.row_sums, row.body


class Throttle(RuleBasedStateMachine):
    """One job on one server, from the first trade to the last."""

    def __init__(self, client: redis.Redis) -> None:
        super().__init__()
        client.flushall()
        self.client = client
        self.clock_ms = NOW_MS
        self.flushes = self.position = self.term = 0
        self.server = Server("log 0")
        self.saved: tuple[dict[bytes, bytes], Server] | None = None
        self.last_batch: Batch | None = None
        self.zombies: list[tuple[Publisher, Batch]] = []
        self.seen: dict[tuple[str, int], tuple[int, dict[str, bytes]]] = {}

    @initialize()
    def begin(self) -> None:
        """Start the job for the first time."""
        self.take_seat()

    def take_seat(self, is_rolled_back: bool = False) -> None:
        """Start a process of the job and check where it may go on."""
        self.client.delete(KEYS.lease("job"))
        lease = Lease(self.client, KEYS, "job", 60_000)
        zeros = (0,) * PARTITIONS
        origin = Cut(self.clock_ms // W * W, zeros, zeros)
        grant = lease.acquire(self.server.log_id, origin, is_rolled_back)
        assert isinstance(grant, LeaseGrant)
        if self.server.cut is None:
            self.server.cut = origin
        self.server.is_new_run = False
        # A term is never given twice, whatever the server has forgotten.
        assert (grant.term > self.term, grant.cut) == (True, self.server.cut)
        self.term = self.server.term = grant.term
        self.cut, self.epoch = grant.cut, grant.epoch
        self.publisher = Publisher(self.client, KEYS, OPTIONS, grant.term)
        self.last_batch = None

    @rule(some=st.lists(appends, min_size=1, max_size=10))
    def append(self, some: list[Append]) -> None:
        """Append trades of any version; a late one is stamped before the clock."""
        for partition, isin, version, late_ms, passed_ms, form in some:
            self.clock_ms += passed_ms
            entries = self.server.log[partition]
            before_ms = entries[-1][1] if entries else 0
            append_ms = max(before_ms, self.clock_ms - late_ms)
            # As times do, positions only grow, whatever a server has forgotten.
            self.position += 1
            payload = make_payload(isin, version, self.position, form)
            entries.append((self.position, append_ms, payload))

    def is_ours(self) -> bool:
        """Tell whether the server is as this process has left it, and the same one."""
        state = self.server.term, self.server.cut, self.server.is_new_run
        return state == (self.term, self.cut, False)

    def between(self, start: Cut, end: Cut) -> Iterator[tuple[int, list[Entry]]]:
        """Yield what each partition has between two cuts."""
        for p, entries in enumerate(self.server.log):
            after, upto = start.positions[p], end.positions[p]
            yield p, [entry for entry in entries if after < entry[0] <= upto]

    def make_cut(self, windows: int, counted: bool) -> Cut:
        """Cut the log so many windows after the job's last cut, as the source does."""
        end_ms = self.cut.end_ms + windows * W
        positions: list[int] = []
        counts: list[int | None] = []
        for p, entries in enumerate(self.server.log):
            inside = [entry[0] for entry in entries if entry[1] < end_ms]
            positions.append(max([self.cut.positions[p], *inside]))
            counts.append(len(inside) if counted else None)
        return Cut(end_ms, tuple(positions), tuple(counts))

    def make_batch(self, end: Cut, size: int, combined: bool, turned: bool) -> Batch:
        """Read a batch in chunks of some size, and group it."""
        tables = [cut_row(self.cut, end)]
        for p, entries in self.between(self.cut, end):
            traded = NOTHING
            for first in range(0, len(entries), size):
                part = zip(*entries[first : first + size], strict=True)
                types = (pa.int64(), pa.int64(), pa.binary())
                arrays = (pa.array(*one) for one in zip(part, types, strict=True))
                chunk = Chunk(*arrays, upto=end.positions[p])
                span = self.cut.end_ms, end.end_ms
                table = trade_rows(chunk, p, *span, MAX_AHEAD_MS)
                traded = traded.plus(*of_all(table).get(p, NOTHING))
                tables.append(combine(table, W) if combined else table)
            tables.append(read_row(p, len(entries), 0, end, 0, traded))
        ordered = tables[::-1] if turned else tables
        return assemble(as_conflated(pa.concat_tables(ordered), W), W)

    @rule(
        windows=st.integers(1, 3),
        size=st.integers(1, 4),
        combined=st.booleans(),
        turned=st.booleans(),
        counted=st.sampled_from([True, True, False]),
        answer_lost=st.booleans(),
    )
    def publish(
        self,
        windows: int,
        size: int,
        combined: bool,
        turned: bool,
        counted: bool,
        answer_lost: bool,
    ) -> None:
        """Let windows pass and publish them, if the server is still the job's own."""
        end = self.make_cut(windows, counted)
        self.clock_ms = max(self.clock_ms, end.end_ms)
        batch = self.make_batch(end, size, combined, turned)
        if not self.is_ours():
            with pytest.raises(StreamLost):
                self.publisher.publish(batch, 0)
            self.take_seat(is_rolled_back=True)
            return
        done = self.publisher.publish(batch, 0)
        published, stale = self.model_publish(end)
        assert (done.epoch, done.offset) == (self.epoch, len(self.server.windows))
        assert (done.windows, done.rows, done.stale) == (windows, published, stale)
        assert done.off_by == 0
        self.cut, self.last_batch = end, batch
        if answer_lost:
            self.publish_again()

    def model_publish(self, end: Cut) -> tuple[int, int]:
        """Publish in plain Python; return the rows published and the stale ones."""
        newest: dict[tuple[int, str], tuple[Any, ...]] = {}
        stands_for: dict[tuple[int, str], RowSums] = {}
        in_part: Counter[tuple[int, str]] = Counter()
        not_last = 0
        for p, entries in self.between(self.cut, end):
            for entry in entries:
                self.server.books["read"] += 1
                trade = judge(entry)
                if trade is None:
                    self.server.books["refused"] += 1
                    continue
                counted_ms = window_time_ms(entry[1], self.cut.end_ms, end.end_ms)
                window = counted_ms // W * W + W
                group = (window, trade.isin)
                amounts = Amounts.of_trade(trade.price, trade.size, trade.updates)
                one = RowSums(1, amounts)
                before = stands_for.get(group)
                stands_for[group] = one if before is None else before.fold(one)
                in_part[group] += trade.updates != ALL
                if not trade.updates.last:
                    not_last += 1
                    continue
                candidate = (*trade.version, entry[0], p, trade.to_row())
                newest[group] = max(newest.get(group, (-1,)), candidate)
        published = 0
        for window in range(self.cut.end_ms + W, end.end_ms + 1, W):
            told = {}
            for isin in ISINS:
                group = (window, isin)
                known, sums = self.server.last.get(isin), stands_for.get(group)
                version, body = b"", b""
                if group in newest:
                    time_us, seq, position, _, body = newest[group]
                    version = encode_version(time_us, seq, position)
                if sums is None or (known is None and not version):
                    continue
                if known is None or version > known.version:
                    is_own = sums.trades == 1 and not in_part[group]
                    text = ONE if is_own else sums.encode()
                    told[isin] = Row(isin, version, text, body)
                    published += 1
                else:
                    told[isin] = known._replace(sums=sums.encode())
            self.server.last.update(told)
            self.server.windows.append((self.epoch, window, told))
        stale = len(newest) - published
        self.server.books.update(
            published=published,
            stale=stale,
            not_last=not_last,
            superseded=sum(s.trades for s in stands_for.values())
            - not_last
            - len(newest),
        )
        self.server.cut = end
        return published, stale

    @precondition(lambda self: self.last_batch is not None)
    @rule()
    def publish_again(self) -> None:
        """Spark runs the last batch again: nothing happens."""
        assert self.last_batch is not None
        if not self.is_ours():
            return
        before = dump_all(self.client)
        assert self.publisher.publish(self.last_batch, 0) == REPEATED
        assert dump_all(self.client) == before

    @rule(windows=st.integers(1, 2), server_restarted=st.booleans())
    def restart(self, windows: int, server_restarted: bool) -> None:
        """Kill the job, its next batch just made; another process takes over."""
        if self.server.term == self.term:
            end = self.make_cut(windows, counted=True)
            batch = self.make_batch(end, size=4, combined=True, turned=False)
            self.zombies.append((self.publisher, batch))
        if server_restarted:
            self.client.hset(KEYS.meta, "server", "another run")
            self.server.is_new_run = True
        known = self.server.term > 0
        epoch, is_new_run = self.epoch, self.server.is_new_run
        self.take_seat()
        assert (self.epoch != epoch) == (is_new_run or not known)

    @precondition(lambda self: self.zombies)
    @rule()
    def wake_a_zombie(self) -> None:
        """A message of a former process arrives late: it changes nothing."""
        publisher, batch = self.zombies[-1]
        is_newer = self.server.term > publisher._term
        before = dump_all(self.client)
        with pytest.raises((Fenced, StreamLost)) as caught:
            publisher.publish(batch, 0)
        assert dump_all(self.client) == before
        assert (caught.type is Fenced) == is_newer

    @rule(what=st.sampled_from(["emptied", "saved", "restored"]))
    def happen_to_the_server(self, what: str) -> None:
        """It is emptied, writes a dump, or comes back with an older one."""
        if what == "emptied":
            self.empty()
        elif what == "saved":
            self.saved = dump_all(self.client), deepcopy(self.server)
        elif self.saved is not None:
            self.restore(*self.saved)

    def empty(self) -> None:
        """Log and stream are gone."""
        self.client.flushall()
        self.flushes += 1
        # Time has passed since the last cut: nobody's next batch begins where the
        # emptied server's first one will.
        self.clock_ms = max(self.clock_ms, self.cut.end_ms) + 5 * W
        self.server = Server(f"log {self.flushes}")
        self.saved = None

    def restore(self, keys: dict[bytes, bytes], server: Server) -> None:
        """The newest is lost."""
        self.client.flushall()
        for key, value in keys.items():
            self.client.restore(key, 0, value)
        self.client.hset(KEYS.meta, "server", "another run")
        self.server = deepcopy(server)
        self.server.is_new_run = True

    @invariant()
    def the_stream_is_the_model_s(self) -> None:
        """Windows, last values and books are what plain Python makes of the log."""
        windows = [
            (s.epoch, s.window, {row.isin: exact(row) for row in s.rows})
            for s in read_snapshots(self.client)
        ]
        assert windows == [
            (epoch, end_ms, {isin: exact(row) for isin, row in rows.items()})
            for epoch, end_ms, rows in self.server.windows
        ]
        for isin, row in self.server.last.items():
            stored = last_value(self.client, isin)
            assert (stored.version, stored.body) == (row.version, row.body)
        assert self.client.hlen(KEYS.last) == len(self.server.last)

    @invariant()
    def no_place_comes_again_with_another_content(self) -> None:
        """What a gateway has seen at an epoch's offset stays true, whatever is lost."""
        for snapshot in read_snapshots(self.client):
            place = snapshot.epoch, snapshot.offset
            content = snapshot.window, {row.isin: row.body for row in snapshot.rows}
            assert self.seen.setdefault(place, content) == content

    @invariant()
    def no_instrument_goes_back(self) -> None:
        """From window to window, an instrument only gets newer, or is restated."""
        newest: dict[str, bytes] = {}
        for snapshot in read_snapshots(self.client):
            for row in snapshot.rows:
                assert row.version >= newest.get(row.isin, b"")
                newest[row.isin] = row.version

    @invariant()
    def the_books_balance(self) -> None:
        """They are those of the model, batch by batch and altogether."""
        if self.server.cut is None:
            return
        ledger, batches = ledger_of(self.client), batches_of(self.client)
        assert ledger.problems() == []
        assert ledger.upto == self.server.cut
        total, model = ledger.total, self.server.books
        assert (total.read, total.published) == (model["read"], model["published"])
        assert (total.superseded, total.stale, total.not_last) == (
            model["superseded"],
            model["stale"],
            model["not_last"],
        )
        assert sum(total.refused.values()) == model["refused"]
        by_batch = add_up(part for batch in batches for part in batch.partitions)
        assert by_batch == total or (batches == [] and total == Books())
        assert sum(batch.windows for batch in batches) == ledger.windows

    @invariant()
    def every_refusal_can_be_looked_at(self) -> None:
        """What the books count as refused is in the dead letters, byte by byte."""
        if self.server.cut is None:
            return
        for p, entries in enumerate(self.server.log):
            letters = {
                position_of(entry_id): fields[b"trade"]
                for entry_id, fields in self.client.xrange(f"{KEYS.dead('job')}:{p}")
            }
            for entry in entries:
                if entry[0] <= self.server.cut.positions[p] and judge(entry) is None:
                    assert letters.get(entry[0]) == entry[2]


def test_whatever_happens_the_stream_is_right(client: redis.Redis) -> None:
    """Exactly once, never back, accounted for: across every crash and loss."""
    run_state_machine_as_test(
        lambda: Throttle(client),
        settings=settings(max_examples=many(60), stateful_step_count=30),
    )


def test_a_frozen_holder_after_a_restore_publishes_nothing(
    client: redis.Redis,
) -> None:
    """The counterexample that the model of the protocol has without the run id.

    A is frozen, B takes over and publishes, Redis comes back from a save of A's time:
    A's term and cut are those of the server again, and its offset is one of B's.
    """
    machine = Throttle(client)
    machine.begin()
    machine.append([(0, ISINS[0], (0, 0), 0, 0, "wire")])
    machine.publish(1, 4, True, False, True, False)
    machine.happen_to_the_server("saved")
    frozen = machine.publisher, machine.cut, machine.epoch, machine.term
    machine.take_seat()
    machine.append([(0, ISINS[0], (1, 0), 0, 0, "wire")])
    machine.publish(1, 4, True, False, True, False)
    machine.no_place_comes_again_with_another_content()
    machine.happen_to_the_server("restored")

    machine.publisher, machine.cut, machine.epoch, machine.term = frozen
    machine.append([(0, ISINS[0], (2, 1), 0, 0, "wire")])
    machine.publish(1, 4, True, False, True, False)
    assert machine.epoch != frozen[2]
    machine.publish(1, 4, True, False, True, False)
    machine.no_place_comes_again_with_another_content()
