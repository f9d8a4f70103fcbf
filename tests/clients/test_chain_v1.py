"""What is hashed of windows, and the check of what a client is sent."""

import json
import re

import pytest

from tests.doc_pages import section_of
from tickthrottle_client.chain_v1 import (
    BEGINS,
    NO_TRADES,
    ChainCheck,
    ChainPlace,
    Link,
    Totals,
    digest_of,
    lines_of_items,
)

TRADE = b'{"isin":"KR7005930003","price":0.30,"size":7}'


@pytest.mark.parametrize(
    ("line", "totals"),
    [
        (TRADE + b" 1", Totals(1, "7", "2.1")),
        (TRADE + b" 3,10.50,2.20,0.3,0.2", Totals(3, "10.5", "2.2")),
        (TRADE + b" 2,0,0,,", Totals(2, "0", "0")),
        (TRADE[:-1] + b',"updates":"range"} 1', NO_TRADES._replace(trades=1)),
        (TRADE[:-1] + b',"updates":"volume"} 1', Totals(1, "7", "2.1")),
        (TRADE + b" 0", Totals(0, "-", "-")),
        (TRADE + b" 5", Totals(5, "-", "-")),
    ],
)
def test_a_line_says_what_its_trades_come_to(line: bytes, totals: Totals) -> None:
    """Exactly, without zeros at the end; what nobody knows is unknown in a sum."""
    assert Totals.of([line]) == totals
    known = Totals.of([TRADE + b" 1"])
    assert ("-" in known.plus(totals)) == ("-" in totals)


def test_a_digest_does_not_depend_on_the_order() -> None:
    """Rows may come in any."""
    assert digest_of([b"b", b"a"]) == digest_of([b"a", b"b"]) != digest_of([b"a"])


@pytest.mark.parametrize(
    ("item", "line"),
    [
        ('"price":1,"trades":1', '"price":1} 1'),
        ('"price":1.0,"trades":2,"volume":3,"value":4', '"price":1.0} 2,3,4,,'),
        (
            '"n":"\\"}],","trades":2,"volume":3,"value":4,"high":5,"low":6',
            '"n":"\\"}],"} 2,3,4,5,6',
        ),
        (
            '"x":{"trades":9},"trades":1,"day":{"start":1,"trades":4,"volume":5}',
            '"x":{"trades":9}} 1',
        ),
    ],
)
def test_an_item_becomes_the_line_that_was_published(item: str, line: str) -> None:
    """Whatever its fields are, without the day."""
    frame = f'{{"type":"update","data":[{{"isin":"A",{item}}}]}}'
    json.loads(frame)
    assert lines_of_items(frame) == [f'{{"isin":"A",{line}'.encode()]


def test_an_item_without_trades_is_none() -> None:
    """It says so."""
    with pytest.raises(ValueError, match="says no trades"):
        lines_of_items('{"data":[{"isin":"A"}]}')


def test_the_example_of_the_specification_holds() -> None:
    """Its hash follows from its items."""
    page = section_of("docs/spec/tick-v1-parts.md", "The chain of windows")
    snapshot, update = re.findall(r'^\{"type":"(?:snapshot|update)".*\}$', page, re.M)
    check = ChainCheck()
    for text in (snapshot, update):
        message = json.loads(text)
        where = message["epoch"], message["offset"], message["window"]
        verdict = check.take(message["type"], where, 1, message["chain"], ())
        assert verdict is not None
        assert verdict.state != "broken", verdict
    [told] = [json.loads(update)["chain"][1]]
    assert told.endswith(digest_of(lines_of_items(update)))


def test_links_are_read_as_they_were_written() -> None:
    """Also those that begin a chain, or go on in another epoch."""
    first = Link.make(None, "a", 1, 2_000, TRADE + b" 1")
    place = ChainPlace("a", 1, first.hash)
    second, other = (
        Link.make(place, epoch, 2, 4_000)._replace(signature="s" * 43)
        for epoch in ("a", "b")
    )
    assert (first.after, second.after, other.after) == (BEGINS, None, place.text)
    for link in (first, second, other):
        assert Link.parse(link.text) == link
    assert ChainPlace.parse(place.text) == place
    with pytest.raises(ValueError, match="six parts or more"):
        Link.parse("too short")


def follow(check: ChainCheck, count: int) -> list[Link]:
    """Have a check begin, and return the links that lead on."""
    place = ChainPlace("a", 1, "h" * 43)
    check.take("snapshot", ("a", 1, 2_000), 1, [place.hash], ())
    links = []
    for offset in range(2, 2 + count):
        link = Link.make(place, "a", offset, offset * 2_000)
        place = ChainPlace("a", offset, link.hash)
        links.append(link)
    return links


def test_links_that_are_told_twice_or_not_at_all() -> None:
    """More than needed are no fault, fewer are; a part of a hash is no beginning."""
    check = ChainCheck()
    one, two, three = follow(check, 3)
    told = [two.hash[:16], one.says, two.says]
    assert check.take("heartbeat", ("a", 3, 6_000), 1, told, ()) == (
        *("holds", "a", 1, 3, False, ""),
    )
    assert check.take("heartbeat", ("a", 3, 6_000), 1, told, ()) is None
    again = [three.hash[:16], two.says, three.says]
    verdict = check.take("heartbeat", ("a", 4, 8_000), 1, again, ())
    assert verdict is not None
    assert verdict.state == "holds"
    lost = check.take("heartbeat", ("a", 6, 9_000), 1, [one.hash, one.says], ())
    assert lost is not None
    assert lost.reason == "2 windows went by, 1 are told"
    assert check.take("heartbeat", ("a", 7, 9_000), 1, ["h" * 16, one.says], ()) is None
    assert check.place is None


def test_another_hash_at_the_same_place_is_a_break() -> None:
    """As where two servers have written two streams."""
    check = ChainCheck()
    follow(check, 0)
    assert check.take("snapshot", ("a", 1, 2_000), 1, ["h" * 43], ()) is None
    other = check.take("snapshot", ("a", 1, 2_000), 1, ["x" * 43], ())
    assert other is not None
    assert (other.state, other.reason) == (
        "broken",
        "its hash is another one than before",
    )
    begun = check.take("snapshot", ("b", 1, 2_000), 1, ["y" * 43], ())
    assert begun is not None
    assert begun.reason == "what was known ends at 1 of epoch a"
