"""What only the whole run can tell, of clients that were told doctored frames."""

from collections.abc import Callable, Sequence
from random import Random

from loadtest.judge.judging import (
    Judgement,
    Seen,
    Span,
    judge_all,
    staleness_ms,
    wrong_values,
)
from loadtest.judge.reference import Change, Reference
from tests.loadtest.frames import EPOCH, A, B, C, Told, make_item


def make_reference(
    *rows: tuple[int, str, int, int], last: int = 12, first: int = 4
) -> Reference:
    """Return what was published: offset, instrument, seq, trades of each row.

    The window with offset n ends at 2,000 n and was published 100 ms later.
    """
    instruments: dict[str, list[Change]] = {}
    for offset, isin, seq, trades in rows:
        price = str(100 + seq)
        change = Change(offset, 1_000 + seq, seq, price, trades, offset * 2_000 - 500)
        instruments.setdefault(isin, []).append(change)
    windows = {n: (n * 2_000, n * 2_000 + 100.0) for n in range(first, last + 1)}
    return Reference(EPOCH, windows, instruments)


ROWS = ((6, A, 3, 4), (7, B, 4, 2), (9, A, 5, 1), (10, A, 6, 3))


def follow(told: Told) -> Told:
    """Have a client told what is in ``ROWS``, as it should be."""
    told.join(5, make_item(A, 1)).update(6, make_item(A, 3, 4))
    told.update(7, make_item(B, 4, 2)).tell("heartbeat", 8)
    return told.update(10, make_item(A, 6, 4), merged=2).tell("heartbeat", 12)


def wrong(told: Told, *rows: tuple[int, str, int, int], holes: Sequence = ()) -> str:
    found = wrong_values(told.checker, make_reference(*(rows or ROWS)), holes, True)
    assert told.faults == []
    return "; ".join(found)


def test_a_client_that_got_everything_is_not_blamed() -> None:
    """Merged, by a heartbeat, or as somebody who watches everything."""
    assert wrong(follow(Told())) == ""
    assert wrong(follow(Told("*"))) == ""


LIES: dict[str, tuple[Callable[[Told], object], str]] = {
    "a window left out": (
        lambda t: t.join(5, make_item(A, 1)).tell("heartbeat", 8),
        "shows time 1001, seq 1, price 101 at offset 8",
    ),
    "a window left out, the next one sent": (
        lambda t: t.join(5, make_item(A, 1)).update(10, make_item(A, 6, 3)),
        "stand for 3 trades since offset 5, published were 8",
    ),
    "an instrument that never came": (
        lambda t: (
            t.join(5, make_item(A, 1))
            .update(6, make_item(A, 3, 4))
            .tell("heartbeat", 7)
        ),
        f"{B} never came, published at 7",
    ),
    "an instrument missing in the snapshot": (
        lambda t: t.join(8, make_item(A, 3)),
        f"{B} never came",
    ),
    "trades counted twice": (
        lambda t: t.join(5, make_item(A, 1)).update(6, make_item(A, 3, 8)),
        "stand for 8 trades since offset 5, published were 4",
    ),
    "a snapshot older than its offset": (
        lambda t: t.join(9, make_item(A, 3), make_item(B, 4)).update(
            10, make_item(A, 6, 3)
        ),
        "was not published then",
    ),
    "a made-up price": (
        lambda t: t.join(5, make_item(A, 1)).update(6, make_item(A, 3, 4, price=7)),
        "seq 3, price 7 at offset 6",
    ),
    "a made-up trade": (
        lambda t: t.join(5, make_item(A, 1)).update(6, make_item(A, 4, 4)),
        "seq 4, price 104 at offset 6",
    ),
    "an update that was never published": (
        lambda t: t.join(5, make_item(A, 1), make_item(B, 2)).update(
            5, make_item(A, 1, 9)
        ),
        "stand for 9 trades",
    ),
}


def test_each_lie_is_found() -> None:
    """Whatever the gateway makes of what was published."""
    for lie, (tell, fault) in LIES.items():
        told = Told()
        tell(told)
        assert fault in wrong(told), lie


def test_a_resumed_snapshot_that_leaves_a_change_out_is_found() -> None:
    told = Told().join(5, make_item(A, 1)).update(6, make_item(A, 3, 4))
    told.join(9, make_item(B, 4), resumed=True)
    assert f"{A} shows" in wrong(told)
    told.update(10, make_item(A, 6, 3))
    assert "stand for 7 trades since offset 5, published were 8" in wrong(told)


def test_a_resumed_client_is_not_blamed() -> None:
    """What changed meanwhile comes without trades, and counts from there."""
    told = Told().join(5, make_item(A, 1)).update(6, make_item(A, 3, 4))
    told.join(9, make_item(A, 5), make_item(B, 4), resumed=True)
    assert wrong(told.update(10, make_item(A, 6, 3))) == ""


def test_a_snapshot_may_be_newer_than_its_offset() -> None:
    """Its last pieces are built when further windows have come."""
    told = Told().subscribe().snapshot(5, make_item(A, 5), final=False)
    told.snapshot(5, make_item(B, 4))
    assert wrong(told) == ""
    assert wrong(told.update(10, make_item(A, 6, 3), merged=5)) == ""


def test_a_client_that_is_cut_within_its_first_snapshot_is_not_blamed() -> None:
    """It holds nothing that it could rely on."""
    told = Told().subscribe().snapshot(9, make_item(A, 5), final=False)
    assert wrong(told) == ""
    assert wrong(told.subscribe()) == ""


def test_a_repaired_hole_is_not_a_gap() -> None:
    """Its trades are not known; a slow client gets them merged with known ones."""
    prompt = Told().join(5, make_item(A, 1))
    prompt.update(9, make_item(A, 5, 0), make_item(B, 4, 0), merged=4)
    prompt.update(10, make_item(A, 6, 3))
    assert wrong(prompt) == ""
    slow = Told().join(5, make_item(A, 1))
    slow.update(10, make_item(A, 6, 3), make_item(B, 4, 0), merged=5)
    assert wrong(slow, holes=prompt.checker.holes) == ""
    assert wrong(slow, holes=[(7, 9)]) != ""


def test_a_part_of_a_window_is_not_a_fault() -> None:
    """Its rows are newer than the offset, which waits for what is held back."""
    told = Told().join(5, make_item(A, 1)).update(6, make_item(A, 3, 4))
    told.update(6, make_item(B, 4, 2), merged=0, window=14_000)
    assert wrong(told) == ""
    ahead = follow(Told("*")).update(12, make_item(A, 7, 2), merged=0, window=26_000)
    assert "seq 7" in wrong(ahead)
    assert wrong(ahead, *ROWS, (13, A, 7, 2)) == ""


def test_equal_versions_published_twice_are_not_a_fault() -> None:
    """A repeat with a later position in the log is newer, though it looks the same."""
    rows = ((6, A, 3, 4), (7, A, 3, 5), (8, A, 3, 1))
    for base in (5, 6, 7):
        told = Told(A).join(base, make_item(A, 3 if base > 5 else 1))
        for offset, _, seq, trades in rows[base - 5 :]:
            told.update(offset, make_item(A, seq, trades))
        assert wrong(told, *rows) == ""


def test_what_was_published_before_the_run_is_not_known() -> None:
    """A client that joined before it is judged by its values only."""
    told = Told().join(2, make_item(A, 1)).update(3, make_item(A, 2, 99))
    told.update(6, make_item(A, 3, 4), merged=3).update(7, make_item(B, 4, 2))
    assert wrong(told) == ""


def judge(*told: Told, samples: int = 0) -> Judgement:
    seen = [Seen("watch", f"client {n}", t.checker) for n, t in enumerate(told)]
    span = Span(0, 30_000, 30_000)
    return judge_all(seen, make_reference(*ROWS), span, [], samples, Random(1))


def test_lag_counts_from_each_windows_own_end() -> None:
    """Also of windows that came merged, or not at all."""
    prompt, lost = Told(), Told(A)
    prompt.now_ms = 11_000
    prompt.join(5, make_item(A, 1))
    prompt.now_ms = 12_249
    prompt.update(6, make_item(A, 3, 4)).update(7, make_item(B, 4, 2), window=14_000)
    prompt.now_ms = 20_299
    prompt.update(10, make_item(A, 6, 4), merged=3)
    lost.join(6, make_item(A, 3))
    found = judge(prompt, lost).kind("watch")
    lags_ms = {end_ms: list(lags) for end_ms, lags in found.lags_ms.items()}
    assert lags_ms == {
        12_000: [250],
        14_000: [-1_749],
        18_000: [2_300, 12_000],
        20_000: [300, 10_000],
    }
    assert list(found.fanouts_ms[20_000]) == [200, 9_900]
    assert (found.clients, found.unseen) == (2, 2)


def test_faults_are_told_by_client() -> None:
    """Those found at once and those found at the end."""
    liar = Told().join(5, make_item(A, 1)).update(6, make_item(C, 3, 4))
    other = Told().tell("snapshot", 9, final=True, epoch="other")
    found = judge(follow(Told()), liar, other)
    assert found.fault_count == 3
    assert [fault.partition(":")[0] for fault in found.faults] == [
        "client 1",
        "client 1",
        "client 2",
    ]
    assert found.kind("watch").tally.faults == 3


def test_staleness_counts_from_when_the_newer_trade_came() -> None:
    """It is 0 while what is shown is the newest, and unknown before there is any."""
    told = Told(A)
    told.now_ms = 12_199
    told.join(6, make_item(A, 3))
    told.now_ms = 20_199
    told.update(10, make_item(A, 6, 4))
    reference = make_reference(*ROWS)
    changes = reference.changes(A)
    moments = (12_000, 12_300, 17_400, 17_600, 20_100, 20_200, 25_000)
    values = [staleness_ms(told.checker, changes, reference, m) for m in moments]
    assert values == [None, 0, 0, 100, 2_600, 0, 0]


def test_staleness_is_sampled_within_each_window() -> None:
    told = Told(A)
    told.now_ms = 9_000
    told.join(5, make_item(A, 1))
    found = judge(told, samples=20).kind("watch")
    assert {end: len(v) for end, v in found.staleness_ms.items()} == {
        **{end_ms: 20 for end_ms in range(12_000, 26_000, 2_000)},
        **{8_000: 0, 10_000: len(found.staleness_ms[10_000])},
    }
    assert max(found.staleness_ms[24_000]) <= 24_000 - 11_500
    assert min(found.staleness_ms[24_000]) > 22_000 - 11_500
