"""Batches that take trades back, asked about one after the other or each by itself."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.trade import Trade
from ingest.tradelog.contract import Ranges
from tests.examples import many
from tests.throttle.past import FIRST_MS, A, B, W, make_batch, make_cut
from throttle.audit.recompute import Entry, WindowRule
from throttle.audit.standing_again import StandingLog, TakenAgain
from throttle.contract.ledger import BatchEntry

RULE = WindowRule(W, max_ahead_ms=5_000)
PARTITIONS = 2


class Entries:
    """A log in a list; it counts what is read of it."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = entries
        self.read = 0

    def between(self, ranges: Ranges) -> Iterator[Entry]:
        """Yield the entries of some ranges."""
        for partition, (after, upto) in ranges.items():
            for one in self.entries:
                if one.partition == partition and after < one.position <= upto:
                    self.read += 1
                    yield one


def logged(number: int, chance: Random, back_ms: int) -> Entry:
    """Return an entry: a trade, one that corrects another, or a cancel."""
    isin, seq, target = chance.choice((A, B)), chance.randrange(5), chance.randrange(5)
    append_ms = FIRST_MS + number * 700 - chance.randrange(back_ms + 1)
    fields = {"isin": isin, "time": append_ms * 1_000, "cancels": target}
    if kind := chance.randrange(3):
        fields = {**fields, "seq": seq, "price": "9", "size": "1"}
        fields["corrects"] = fields.pop("cancels")
        if kind == 1:
            del fields["corrects"]
    payload = Trade.from_fields(fields).to_wire()
    return Entry(number % PARTITIONS, number, append_ms, payload)


def batches_of(entries: Sequence[Entry], chance: Random) -> list[BatchEntry]:
    """Cut a log at some of its entries."""
    at = sorted({0, len(entries), *(chance.randrange(len(entries)) for _ in range(4))})
    cuts = [make_cut(n, [count - 1] * PARTITIONS) for n, count in enumerate(at)]
    return [make_batch(start, end, ()) for start, end in pairwise(cuts)]


def answer(log: StandingLog, batch: BatchEntry) -> tuple[object, ...]:
    """Return what a batch takes back, as it is now."""
    taken: TakenAgain = log.taken_by(batch, (A, B), {})
    rows = {
        isin: row._replace(gone=frozenset(row.gone), known=frozenset(row.known))
        for isin, row in taken.rows.items()
    }
    return rows, taken.taken_back, taken.unknown_target


@settings(max_examples=many(150))
@given(st.integers(0, 10**6), st.sampled_from([0, 20_000]), st.integers(2, 40))
def test_one_after_the_other_is_each_by_itself(
    seed: int, back_ms: int, length: int
) -> None:
    """Also where the clock that stamps entries goes back."""
    chance = Random(seed)
    entries = [logged(number, chance, back_ms) for number in range(length)]
    batches = batches_of(entries, chance)
    log = StandingLog(Entries(entries).between, RULE, batches)
    for batch in batches:
        alone = StandingLog(Entries(entries).between, RULE, [batch])
        assert answer(log, batch) == answer(alone, batch)


def test_the_log_is_gone_through_once() -> None:
    """However many batches take something back; and once for which those are of."""
    chance = Random(1)
    entries = [logged(number, chance, 0) for number in range(400)]
    cuts = [make_cut(n, [n * 4 - 1] * PARTITIONS) for n in range(101)]
    batches = [make_batch(start, end, ()) for start, end in pairwise(cuts)]
    held = Entries(entries)
    log = StandingLog(held.between, RULE, batches)
    taken = [log.taken_by(batch, (A, B), {}).taken_back for batch in batches]
    assert sum(taken) > 50
    assert held.read == 2 * len(entries)
