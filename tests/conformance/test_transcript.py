"""The form of transcripts, and what is compared."""

import json

import pytest

from conformance.clauses import read_clauses
from conformance.client.expected import differences
from conformance.client.said import Pace, breaches_of, read_said
from conformance.client.transcript import (
    INSTRUMENTS,
    BadTranscript,
    encode,
    filled,
    parse_transcripts,
)
from conformance.conformance_command import read_transcripts

A = INSTRUMENTS["A"]


def test_a_step_keeps_every_digit_and_names_instruments() -> None:
    """What is sent has the text of the transcript."""
    step = '> update {"offset":2,"data":[[A#5=0.30x1.50*2,{"volume":7.10}]]}'
    [found] = parse_transcripts(f"== T\nclauses C-1\n{step}")
    sent = encode(filled("update", found.steps[0].given, 0))
    assert '"price":0.30,"size":1.50,"trades":2,"volume":7.10' in sent
    message = json.loads(sent)
    assert message["data"][0]["isin"] == A
    assert (message["epoch"], message["window"]) == ("e1", 1_773_964_804_000)


@pytest.mark.parametrize("line", ["dance A", 'holds {"items":'])
def test_a_line_that_is_none_is_named(line: str) -> None:
    with pytest.raises(BadTranscript, match=r"x\.txt, line 3: .*"):
        parse_transcripts(f"== T\nclauses C-1\n{line}", "x.txt")


def test_every_transcript_tries_clauses_of_the_specification() -> None:
    """Sixty at least, each of its own title, each clause one that there is."""
    transcripts = read_transcripts()
    titles = [one.title for one in transcripts]
    assert len(titles) >= 60
    assert len(set(titles)) == len(titles)
    known = set(read_clauses())
    for one in transcripts:
        assert one.clauses, one.title
        assert known.issuperset(one.clauses), one.title
        assert one.steps[-1].word in {"holds", "asks", "away"}, one.title


def test_the_clauses_are_read_from_the_pages() -> None:
    """In order, of servers and clients, each once."""
    clauses = read_clauses()
    assert clauses[0] == "C-1"
    assert {"C-29", "CT-4", "S-50", "ST-7"} <= set(clauses)
    assert len(set(clauses)) == len(clauses)


@pytest.mark.parametrize(
    ("expected", "got", "is_same"),
    [
        ({"price": "0.30"}, {"price": "0.30", "more": "1"}, True),
        ({"price": "0.30"}, {"price": "0.3"}, False),
        ({"volume": "0.30"}, {"volume": "0.3"}, True),
        ({"volume": "0.30"}, {"volume": "x"}, False),
        ({"seq": 5}, {"seq": "5"}, True),
        ({"seq": 5}, {}, False),
        ({"day": None}, {}, True),
        ({"day": None}, {"day": {}}, False),
        ({"closed": True}, {"closed": True}, True),
        ({"closed": True}, {"closed": "true"}, False),
        ([1, {"a": 2}], ["1", {"a": "2", "b": "3"}], True),
        ([1], ["1", "2"], False),
        ({"a": 1}, [], False),
    ],
)
def test_what_is_held_is_compared(expected: object, got: object, is_same: bool) -> None:
    """Numbers by their text, sums by their value; null is what is not there."""
    assert (not list(differences(expected, got))) == is_same


def test_what_a_client_says_has_a_form() -> None:
    """An object with an op of the protocol, in text."""
    assert read_said('{"op":"list"}') == ({"op": "list"}, "")
    for data in (b"{}", "x", "[]", '{"op":"dance"}'):
        assert read_said(data)[1]


def test_each_message_is_held_to_its_clauses() -> None:
    """The id, and what has to be in every subscribe."""
    options = {"min_interval_ms": 4000, "fields": ["price"]}
    message = {"op": "subscribe", "id": "x" * 37}
    found = [clause for clause, _ in breaches_of(message, options)]
    assert found == ["C-4", "C-13", "C-27"]
    assert not list(breaches_of({"op": "ping", "id": 4}, options))
    assert list(breaches_of({"op": "ping", "id": True}, {}))


def test_twice_the_pace_may_come_at_once() -> None:
    """Then as many as time has passed for."""
    pace = Pace(10)
    assert [pace.is_kept(0) for _ in range(21)] == [True] * 20 + [False]
    assert pace.is_kept(0.2)
