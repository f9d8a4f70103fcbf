"""Entries that hold several trades, or none: the decoder of the page, as it stands."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.tradelog.contract import Chunk
from tests.examples import many
from tests.paths import ROOT
from tests.throttle.conflated import as_conflated
from tests.throttle.drivers import MakeDriver
from tests.throttle.window.test_checked_rows import make_chunk
from throttle.contract.cut import Cut
from throttle.testing.driver import START_MS
from throttle.window.batch import assemble
from throttle.window.bounded_rows import bound_letters, bound_names
from throttle.window.checked_rows import extra_trades, trade_rows
from throttle.window.control_rows import cut_row, read_row
from throttle.window.decoder import MOST_NAMES, OTHER, find_decoder
from throttle.window.row_schema import SKIPPED_PREFIX

pytestmark = pytest.mark.redis
PAGE = (ROOT / "docs" / "kafka.md").read_text("utf-8")
[EXAMPLE] = re.findall(r"```python\n# upbit_topic\.py\n(.*?)```", PAGE, re.DOTALL)
DECODER = "tests.throttle.upbit_topic:decode"
BTC, LAMB = "QUCKRWBTC002", "QUCKRWLAMB01"
CODES = {"KRW-BTC": BTC, "KRW-LAMB": LAMB}
W = 2_000


def test_the_decoder_is_that_of_the_page() -> None:
    """What a reader copies is what is tested here."""
    own = (ROOT / "tests" / "throttle" / "upbit_topic.py").read_text("utf-8")
    assert own.split("\n\n", 1)[1] == EXAMPLE


def frame(code: str, sid: int, price: str, at_ms: int = 0, side: str = "BID") -> str:
    """A trade as Upbit's WebSocket writes it, in its short format."""
    time_ms = START_MS + at_ms
    return (
        f'{{"ty":"trade","cd":"{code}","tms":{time_ms + 712},"ttms":{time_ms},'
        f'"tp":{price},"tv":46.48838371,"ab":"{side}","sid":{sid},"st":"REALTIME"}}'
    )


def frames(*each: str) -> bytes:
    """Several trades in one frame."""
    return f"[{','.join(each)}]".encode()


BOOK = b'{"ty":"orderbook","cd":"KRW-BTC","obu":[]}'


def test_frames_of_trades_and_order_books(make_driver: MakeDriver) -> None:
    """Every trade is published or accounted for, every digit stays."""
    driver = make_driver(decoder=DECODER)
    driver.payload(frame("KRW-BTC", 1, "127.50").encode(), at_ms=100)
    driver.payload(BOOK, at_ms=200)
    bad = frame("KRW-LAMB", 2, "-1", 100)
    worse = frame("KRW-LAMB", 3, "0", 100)
    driver.payload(
        frames(
            frame("KRW-BTC", 4, "128.0", 100),
            bad,
            frame("KRW-LAMB", 5, "6E-8", 100),
            worse,
            frame("KRW-BTC", 4, "128.10", 100, side="ASK"),
        ),
        at_ms=300,
    )
    driver.payload(BOOK, at_ms=400)
    driver.payload(frame("KRW-NEW", 6, "1").encode(), at_ms=500)
    driver.turn_clock(2_000)

    [window] = driver.windows()
    assert window.prices() == {BTC: "128.10", LAMB: "0.00000006"}
    assert window.fields(BTC)["side"] == "ASK"
    assert (window.fields(BTC)["trades"], window.fields(LAMB)["trades"]) == (3, 1)
    ledger = driver.ledger()
    books = ledger.total
    assert (books.read, books.extra) == (5, 4)
    assert (books.published, books.superseded, books.stale) == (2, 2, 0)
    assert books.refused == {"bad_price": 2, "not_decoded": 1}
    assert books.skipped == {"orderbook": 2}
    assert ledger.problems() == []
    letters = driver.dead_letters()
    assert [one["reason"] for one in letters] == ["bad_price", "not_decoded"]
    assert letters[0]["error"].startswith("trade 2 of 5: price -1: must be")
    assert letters[0]["trade"].startswith('[{"ty":"trade"')
    assert books.unkept == 1


EVENTS = st.lists(
    st.one_of(
        st.just(None),
        st.lists(
            st.tuples(
                st.sampled_from([*CODES, "KRW-LAMB"]),
                st.integers(1, 3),
                st.sampled_from(["1", "2.50", "3E-4", "0", "-1"]),
            ),
            min_size=1,
            max_size=4,
        ),
    ),
    max_size=12,
)


def oracle(events: list[list[tuple[str, int, str]] | None]) -> dict[str, Any]:
    """What has to come out, decoded by other means and one trade after the other."""
    newest: dict[str, tuple[int, int, Decimal]] = {}
    counts: Counter[str] = Counter()
    trades: defaultdict[str, int] = defaultdict(int)
    for position, event in enumerate(events):
        counts["skipped"] += event is None
        for code, sid, price in event or ():
            value = Decimal(price)
            if value <= 0:
                counts["refused"] += 1
                continue
            isin = CODES[code]
            trades[isin] += 1
            if isin not in newest or (sid, position) >= newest[isin][:2]:
                newest[isin] = sid, position, value
    rows = {isin: (value, trades[isin]) for isin, (_, _, value) in newest.items()}
    return {"rows": rows, **counts}


@settings(max_examples=many(200))
@given(EVENTS, st.integers(1, 5))
def test_any_frames_are_as_an_oracle_says(
    events: list[list[tuple[str, int, str]] | None], chunk_size: int
) -> None:
    """However they are cut into chunks; the books balance."""
    payloads = [
        BOOK if e is None else frames(*(frame(c, sid, p) for c, sid, p in e))
        for e in events
    ]
    batch = assemble(conflated(payloads, chunk_size), W)

    [window], [count] = batch.windows, batch.counts
    wanted = oracle(events)
    found = {
        isin: (Decimal(str(json.loads(row.body, parse_float=str)["price"])), row.trades)
        for isin, (_, row) in window.rows.items()
    }
    assert found == wanted["rows"]
    assert count.skipped.total() == wanted.get("skipped", 0)
    assert count.refused.total() == wanted.get("refused", 0)
    became = len(found) + count.superseded + count.refused.total()
    assert count.read + count.extra == became + count.skipped.total()
    letters = {letter.position for letter in batch.dead_letters}
    assert count.refused.total() == len(letters) + count.unkept


def conflated(payloads: list[bytes], chunk_size: int) -> Any:
    """What Spark would hand to the driver."""
    decoder = find_decoder(DECODER)
    assert decoder is not None
    start, end = Cut(START_MS, (41,), (None,)), Cut(START_MS + W, (999,), (None,))
    letters: Counter[int] = Counter()
    names: set[str] = set()
    extra: Counter[int] = Counter()
    tables = []
    whole = make_chunk(*payloads, append_ms=START_MS + 5)
    for at in range(0, len(payloads), chunk_size):
        chunk = part(whole, slice(at, at + chunk_size))
        rows = trade_rows(chunk, 0, START_MS, START_MS + W, 5_000, decoder)
        extra += extra_trades(rows, {0: len(chunk)})
        tables.append(bound_letters(bound_names(rows, names), letters))
    tables += [read_row(0, len(payloads), 0, end, extra[0]), cut_row(start, end)]
    return as_conflated(pa.concat_tables(tables), W)


def part(chunk: Chunk, which: slice) -> Chunk:
    """Return some entries of a chunk."""
    columns = (chunk.positions, chunk.append_ms, chunk.payloads)
    return Chunk(*(column[which] for column in columns), upto=chunk.upto)


def test_names_are_bounded() -> None:
    """A stranger's words cannot make the books grow."""
    names: set[str] = set()
    kept: Counter[str] = Counter()
    name: Callable[[bytes], str] = bytes.decode
    for start in range(0, 100, 10):
        chunk = make_chunk(*(b"n%d" % n for n in range(start, start + 10)))
        rows = trade_rows(chunk, 0, 0, 10**15, 5_000, name)
        kept.update(bound_names(rows, names)["reason"].to_pylist())

    assert len(kept) == MOST_NAMES + 1
    assert kept[SKIPPED_PREFIX + OTHER] == 100 - MOST_NAMES
