"""Changes of the instrument table: written, read, found."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.instrument_table.instrument_entry import (
    BadInstruments,
    InstrumentEntry,
    read_entry,
)
from ingest.instrument_table.instrument_store import (
    MAX_CHANGE_BYTES,
    InstrumentChange,
    decode_change,
    difference,
    encode_instrument,
)
from ingest.instrument_table.known_instruments import Instruments
from tests.gateway.samples import HYNIX, NAVER, SAMSUNG

_TEXT = st.none() | st.sampled_from(["KOSPI", "삼성전자", 'a "b", c', "😀" * 200])
_ENTRIES = st.builds(
    InstrumentEntry,
    isin=st.sampled_from([SAMSUNG, HYNIX, NAVER]),
    code=st.none() | st.sampled_from(["005930", "A"]),
    name=_TEXT,
    market=_TEXT,
    sector=_TEXT,
    prev_close=st.none() | st.sampled_from(["1.10", "71900", "0.000000000000000001"]),
    english_name=_TEXT,
    listed_shares=st.none() | st.just("123456789012345678"),
    tick_table=_TEXT,
    status=st.none() | st.sampled_from(["halted", "trading"]),
)
_LISTS = st.lists(_ENTRIES, unique_by=lambda entry: entry.isin)


@given(_ENTRIES)
def test_what_is_written_is_read_again(entry: InstrumentEntry) -> None:
    """Every field, every digit; a change of the longest text is not too large."""
    encoded = encode_instrument(entry)
    assert len(encoded) < MAX_CHANGE_BYTES
    found = decode_change(7, entry.isin.encode(), encoded)
    assert found == InstrumentChange(7, entry.isin, entry)


@pytest.mark.parametrize("nothing", [pytest.param(b"", id="empty"), None])
def test_nothing_is_the_end_of_an_instrument(nothing: bytes | None) -> None:
    """Empty in Redis, no value in a topic."""
    assert encode_instrument(None) == b""
    assert decode_change(1, SAMSUNG.encode(), nothing).entry is None


@pytest.mark.parametrize(
    ("isin", "instrument", "words"),
    [
        (b"KR7005930004", b"", "isin 'KR7005930004': check digit is 3"),
        pytest.param(b"\xff", b"", "isin '\\\\xff'", id="bytes"),
        (SAMSUNG.encode(), b"{", "must be JSON"),
        (SAMSUNG.encode(), b"[]", "must be a JSON object"),
        (SAMSUNG.encode(), b'{"isin":1}', "isin: must be text"),
        (SAMSUNG.encode(), b'{"isin":"KR7000660001"}', "must be the change's own"),
        (SAMSUNG.encode(), b'{"name":"x"}', "isin ''"),
        pytest.param(SAMSUNG.encode(), b" " * MAX_CHANGE_BYTES, "more than", id="long"),
        pytest.param(
            SAMSUNG.encode(),
            orjson.dumps({"isin": SAMSUNG, "status": "Gone!"}),
            "status 'Gone!'",
            id="status",
        ),
    ],
)
def test_what_others_write_is_checked(
    isin: bytes, instrument: bytes, words: str
) -> None:
    """A change that breaks a rule is refused with a sentence."""
    with pytest.raises(BadInstruments) as caught:
        decode_change(1, isin, instrument)
    assert words in str(caught.value)


def test_unknown_fields_are_not_looked_at() -> None:
    """A later version of this program may write them."""
    change = decode_change(1, SAMSUNG.encode(), b'{"isin":"KR7005930003","x":"y"}')
    assert change.entry == read_entry({"isin": SAMSUNG})


@given(_LISTS, _LISTS, st.booleans())
def test_a_difference_makes_one_list_of_another(
    before: list[InstrumentEntry], wanted: list[InstrumentEntry], keeps_others: bool
) -> None:
    """With it applied everything wanted is there; a second difference is empty."""
    known = Instruments(before)
    pairs = difference(known, wanted, keeps_others=keeps_others)
    changes = [InstrumentChange(n, *pair) for n, pair in enumerate(pairs, 1)]
    later = known.after(changes)
    kept = {entry.isin for entry in before} if keeps_others else set()
    assert {i.isin for i in later} == {i.isin for i in wanted} | kept
    assert all(later.get(entry.isin) == entry for entry in wanted)
    assert difference(later, wanted, keeps_others=keeps_others) == []
    assert len(changes) <= len(before) + len(wanted)
