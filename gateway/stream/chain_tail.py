"""The newest links of the stream's chain, and what a client is told of them. Pure."""

from collections import deque

from throttle.contract.snapshot import WindowSnapshot
from tickthrottle_client.chain_v1 import SHORT_CHARS, ChainPlace

MOST_LINKS = 512
"""So many are kept: a client that is further behind begins anew."""


class ChainTail:
    """Places that follow each other in one epoch, each with what its link says.

    What the first one says leads to it from a place that is not known here.
    """

    def __init__(self) -> None:
        self._links: deque[tuple[ChainPlace, str]] = deque(maxlen=MOST_LINKS)

    def take(self, snapshot: WindowSnapshot) -> None:
        """Take in the links of an update; one without links ends the chain."""
        first = snapshot.offset - snapshot.windows + 1
        if len(snapshot.chain) != snapshot.windows:
            self._links.clear()
            return
        for offset, link in enumerate(snapshot.chain, first):
            before = self._links[-1][0] if self._links else None
            place = ChainPlace(snapshot.epoch, offset, link.hash)
            is_next = before is not None and before[:2] == (place.epoch, offset - 1)
            if not is_next or link.after is not None:
                self._links.clear()
            self._links.append((place, link.says))

    @property
    def newest(self) -> ChainPlace | None:
        """The newest place, None if there is none."""
        return self._links[-1][0] if self._links else None

    def restart(self, place: ChainPlace | None) -> None:
        """Go on from a place that was read, if there is one."""
        self._links.clear()
        if place is not None:
            self._links.append((place, ""))

    def told(self, since: int, upto: int) -> list[str]:
        """Return ``chain`` of a message up to an offset, for who knows it ``since``.

        The hash at ``upto`` alone where a client begins, or has to anew; nothing where
        that is not known, and where the client has it.
        """
        first = self._links[0][0].offset if self._links else upto + 1
        last = first + len(self._links) - 1
        if not first <= upto <= last or upto <= since <= last:
            return []
        digest = self._links[upto - first][0].hash
        if not first <= since < upto:
            return [digest]
        says = (self._links[n - first][1] for n in range(since + 1, upto + 1))
        return [digest[:SHORT_CHARS], *says]
