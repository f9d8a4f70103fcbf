"""One instrument: what each field may be, and how it is shown."""

import json

import pytest

from ingest.instrument_table.instrument_entry import (
    FIELDS,
    BadInstruments,
    InstrumentEntry,
    read_entry,
    visible,
)
from tests.gateway.samples import SAMSUNG


def test_numbers_keep_their_text() -> None:
    """Clients get them as they were written; what nobody has said is null."""
    entry = InstrumentEntry(SAMSUNG, prev_close="0.30", listed_shares="5919637922")
    assert b'"prev_close":0.30,' in entry.encoded
    assert b'"listed_shares":5919637922,' in entry.encoded
    shown = json.loads(InstrumentEntry(SAMSUNG).encoded)
    assert shown == dict.fromkeys(FIELDS) | {"isin": SAMSUNG}


def test_what_is_read_can_be_read_again() -> None:
    """Spaces around a text are no part of it, and empty is what nobody has said."""
    entry = read_entry({"isin": f" {SAMSUNG} ", "name": " 삼성\u3000전자 ", "code": ""})
    assert entry == InstrumentEntry(SAMSUNG, name="삼성\u3000전자")
    assert entry.to_fields() == {"isin": SAMSUNG, "name": "삼성\u3000전자"}
    assert read_entry(entry.to_fields()) == entry


@pytest.mark.parametrize(
    ("field", "text", "words"),
    [
        ("isin", "KR7005930004", "isin 'KR7005930004': check digit is 3"),
        ("code", "00593 0", "code '00593 0': must be 1 to 11 letters"),
        ("prev_close", "-1", "prev_close '-1': must be a plain decimal above zero"),
        ("prev_close", "1" * 19, "must be a plain decimal"),
        ("currency", "won", "currency 'won': must be 2 to 10 capital letters"),
        ("listed_shares", "1.5", "listed_shares '1.5': must be a whole number"),
        ("listed_shares", "0", "must be a whole number above zero"),
        ("status", "Halted", "status 'Halted': must be 1 to 20 small letters"),
        pytest.param("name", "a\nb", "name 'a\\nb': must have no control", id="line"),
        pytest.param("name", "a\x00", "name 'a\\x00': must have no control", id="nul"),
        pytest.param("sector", "a\u202eb", "'a\\u202eb': must have no", id="turned"),
        pytest.param("market", "a\u2028b", "'a\\u2028b': must have no", id="separator"),
        *(
            pytest.param("name", f"a{char}b", "nor others that", id=f"{ord(char):x}")
            for char in "\u200b\u200d\u00ad\ufff9\U000e0041\u3164\u2800\ufe0f\ufeff"
        ),
        pytest.param("name", "x" * 201, "...': has over 200 characters", id="long"),
        pytest.param("tick_table", "\U0001f600" * 201, "has over 200", id="wide"),
    ],
)
def test_a_bad_field_is_told(field: str, text: str, words: str) -> None:
    """One sentence with the field, the value and the rule."""
    with pytest.raises(BadInstruments) as caught:
        read_entry({"isin": SAMSUNG} | {field: text})
    message = str(caught.value)
    assert words in message
    assert message.isprintable()
    assert len(message) < 200


def test_what_is_seen_stays() -> None:
    """Letters, marks and signs of every script do; what is not seen goes."""
    seen = "삼성전자 e\u0301 é 株式会社 हिन्दी ไทย \U0001f600 ₩ —"
    assert visible(seen) == seen
    assert visible("Sam\u200bsung\u202e\r\n \u3164Electronics") == "Samsung Electronics"


def test_an_instrument_needs_an_isin() -> None:
    """Nothing else has to be there."""
    with pytest.raises(BadInstruments, match="isin ''"):
        read_entry({"name": "Samsung"})
    assert read_entry({"isin": SAMSUNG}) == InstrumentEntry(SAMSUNG)
