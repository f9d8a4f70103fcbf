"""The newest links, and what of them a client is told."""

from dataclasses import replace

from gateway.stream.chain_tail import MOST_LINKS, ChainTail
from tests.gateway.samples import EPOCH, SAMSUNG, make_row, make_snapshot
from throttle.contract.snapshot import WindowSnapshot
from tickthrottle_client.chain_v1 import SHORT_CHARS, ChainPlace, Link


class Stream:
    """Windows with links, one after the other."""

    def __init__(self, epoch: str = EPOCH) -> None:
        self.epoch = epoch
        self.links: list[Link] = []
        self.place: ChainPlace | None = None

    def next(self) -> WindowSnapshot:
        """Return the next window."""
        offset = len(self.links) + 1
        window = make_snapshot(offset, make_row(SAMSUNG, "1"), epoch=self.epoch)
        link = Link.make(self.place, self.epoch, offset, window.window)
        self.links.append(link)
        self.place = ChainPlace(self.epoch, offset, link.hash)
        return replace(window, chain=(link,))


def test_who_knows_a_place_is_told_what_came_since() -> None:
    """The links, and the beginning of the hash that they lead to."""
    tail, stream = ChainTail(), Stream()
    for _ in range(3):
        tail.take(stream.next())
    links = stream.links
    assert tail.told(1, 3) == [
        links[2].hash[:SHORT_CHARS],
        links[1].says,
        links[2].says,
    ]
    assert tail.told(3, 3) == tail.told(3, 2) == []
    assert tail.told(-1, 2) == [links[1].hash]
    assert tail.told(5, 3) == [links[2].hash]
    assert tail.told(1, 4) == tail.told(-1, 0) == []


def test_what_leads_nowhere_begins_anew() -> None:
    """A hole, another epoch, a window without a link, a place that was read."""
    tail, stream = ChainTail(), Stream()
    first, _, third = stream.next(), stream.next(), stream.next()
    tail.take(first)
    tail.take(third)
    assert tail.told(1, 3) == [stream.links[2].hash]
    other = Stream("other")
    tail.take(other.next())
    assert tail.told(3, 1) == [other.links[0].hash]
    tail.take(replace(other.next(), chain=()))
    assert tail.told(1, 2) == []
    tail.restart(ChainPlace("other", 7, "h" * 43))
    assert tail.told(-1, 7) == ["h" * 43]
    tail.restart(None)
    assert tail.told(-1, 7) == []


def test_few_links_are_kept() -> None:
    """Who is further behind than they reach begins anew."""
    tail, stream = ChainTail(), Stream()
    for _ in range(MOST_LINKS + 1):
        tail.take(stream.next())
    last = MOST_LINKS + 1
    assert len(tail.told(2, last)) == MOST_LINKS
    assert tail.told(1, last) == [stream.links[-1].hash]
