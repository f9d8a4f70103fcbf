"""The kit's chain is that of the product, which was written by the same page."""

import pytest

from conformance.client.told_chain import FAULTS, MADE, ToldChain
from conformance.client.transcript import encode, filled, parse_transcripts
from conformance.server.chain_rules import ChainRules
from conformance.server.frame_rules import read_frame
from conformance.specified_chain import ChainEnd, added, lines_of, link_of, totals_of
from tickthrottle_client.chain_v1 import ChainPlace as Place
from tickthrottle_client.chain_v1 import Link, Totals, lines_of_items

ROWS = (
    '{"isin":"KR7005930003","time":1,"seq":2,"price":0.30,"size":7,"trades":1}',
    '{"isin":"KR7000660001","time":1,"seq":3,"price":5,"size":1,"side":"B","trades":9,'
    '"volume":0.000000000000000003,"value":12345678901234567890.5,"high":6,"low":4,'
    '"day":{"start":1,"trades":9,"volume":1,"value":1}}',
    '{"isin":"KR7035420009","time":1,"seq":4,"price":5,"size":2,"trades":2,'
    '"volume":2,"value":10}',
)


@pytest.mark.parametrize("rows", [ROWS, ROWS[:1], (), (*ROWS, ROWS[0][:-2] + "4}")])
def test_lines_sums_and_hashes_are_those_of_the_product(rows: tuple[str, ...]) -> None:
    """Of one trade, of many, none, and of sums that nobody knows."""
    text = f'{{"type":"update","data":[{",".join(rows)}]}}'
    lines = lines_of(text)
    assert [line.encode() for line in lines] == lines_of_items(text)
    items = read_frame(text)["data"]
    totals = Totals.of(lines_of_items(text))
    assert totals_of(items) == " ".join(map(str, totals))
    link = Link.make(Place("e", 4, "x"), "e", 5, 10, *lines_of_items(text))
    assert link_of(10, lines, items) == link.says
    assert ChainEnd("e", 4, "x").after(link.says) == ("e", 5, link.hash)
    twice = [totals_of(items)] * 2
    assert added(twice) == " ".join(map(str, totals.plus(totals)))


def test_an_item_that_says_no_trades_has_no_line() -> None:
    with pytest.raises(ValueError, match="says no trades behind all else"):
        lines_of('{"data":[{"isin":"x"}]}')


STREAM = """== T
clauses C-30
> snapshot {"offset":1,"chain":"begins","data":[A#1=100]}
> update {"offset":2,"chain":"links","data":[A#2=101*1]}
> heartbeat {"offset":4,"chain":"links"}
> update {"offset":5,"chain":"WORD","data":[A#3=102.5x2*1]}
"""


def breaches_of(word: str, stream: str = STREAM) -> list[str]:
    """Return what a server is found to break that tells so of its last window."""
    told, rules, found = ToldChain(), ChainRules(), list[str]()
    [transcript] = parse_transcripts(stream.replace("WORD", word))
    for step in transcript.steps:
        message = filled(step.words[0], step.given, 0)
        if "chain" in message:
            message["chain"] = told.told(message["chain"], message)
        text = encode(message)
        found += [clause for clause, _ in rules.take(text, read_frame(text))]
    assert rules.place is not None
    return found


def test_what_a_played_server_tells_is_judged_as_that_of_a_real_one() -> None:
    """Each fault of a link breaks S-52, a beginning S-53 or S-54."""
    assert breaches_of("links") == []
    for word in (*FAULTS, *MADE, "elsewhere"):
        assert set(breaches_of(word)) == {"S-52"}, word
    assert breaches_of("begins") == ["S-54"]
    assert set(breaches_of("part")) == {"S-52"}
    assert breaches_of("", STREAM.replace(',"chain":"WORD"', "")) == ["S-52"]
    with pytest.raises(KeyError):
        breaches_of("dance")
