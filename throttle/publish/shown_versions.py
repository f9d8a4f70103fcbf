"""Which rows of a batch Redis is going to find stale, as far as one job can know."""

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import NamedTuple, cast

import redis

from throttle.contract.trade_order import (
    NO_VERSION,
    REVISION_CHARS,
    VERSION_CHARS,
    as_shown,
)
from throttle.standing.restated import NOTHING_RESTATED, Restated
from throttle.window.batch import Batch
from throttle.window.group_rows import Place

_ASKED_AT_ONCE = 1_000
_FIRST_REVISION = b"0" * (REVISION_CHARS - 1) + b"1"


class NoNews(NamedTuple):
    """Rows of a batch that show no trade of their own.

    ``stale`` ones restate what is shown; of the instruments of ``unshown`` ones nothing
    was ever shown, so there is nothing to restate: they are not published.
    """

    stale: frozenset[Place]
    unshown: frozenset[Place]

    @classmethod
    def decode(cls, names: bytes) -> "NoNews":
        """Decode what the script or ``encode`` says."""
        rows: dict[str, set[Place]] = {name: set() for name in cls._fields}
        words = iter(names.decode().split())
        for end_ms, isin, which in zip(words, words, words, strict=True):
            rows[which].add((int(end_ms), isin))
        return cls(*(frozenset(places) for places in rows.values()))

    def encode(self, batch: Batch) -> str:
        """Name the rows in the script's order, as ``publisher.lua`` says."""
        if not self.stale and not self.unshown:
            return ""
        which = dict.fromkeys(self.stale, "stale")
        which |= dict.fromkeys(self.unshown, "unshown")
        return " ".join(
            f"{window.end_ms} {row.isin} {which[window.end_ms, row.isin]}"
            for window in batch.windows
            for partition in batch.end.partitions
            for row in window.of_partition(partition)
            if (window.end_ms, row.isin) in which
        )


class ShownVersions:
    """Remembers the newest version of every instrument that was in a batch.

    Redis decides; where other jobs publish the same instruments, this may be behind.
    """

    def __init__(self, client: redis.Redis, last: str) -> None:
        """Begin with nothing; ``last`` is the hash of last values."""
        self._client = client
        self._last = last
        self._newest: dict[str, bytes] = {}
        self._in_batch: dict[str, bytes] = {}
        self.revised: dict[Place, bytes] = {}
        """Versions with a revision, of rows that ``no_news`` has looked at last."""

    def no_news(
        self, batch: Batch, restated: Mapping[str, Restated] = NOTHING_RESTATED
    ) -> NoNews:
        """Return the rows that are no news. Raises redis.RedisError.

        ``restated`` are instruments whose row in the last window may step back.
        """
        self.ask_for({isin for window in batch.windows for isin in window.rows})
        shown, newest = self._newest, dict[str, bytes]()
        stale: list[Place] = []
        unshown: list[Place] = []
        self.revised = {}
        for window in batch.windows:
            for _, (isin, version, *_) in window.rows.values():
                known = newest.get(isin) or shown[isin]
                is_restated = isin in restated and window is batch.windows[-1]
                if known > _FIRST_REVISION or is_restated:
                    gone = restated[isin].gone if is_restated else ()
                    revised = as_shown(version, known, gone)
                    version = version if version == NO_VERSION else revised
                # As ``is_newer`` says it; a call for each would take twice as long.
                if version > known and version != NO_VERSION:
                    newest[isin] = version
                    if version > _FIRST_REVISION:
                        self.revised[window.end_ms, isin] = version
                else:
                    (stale if known else unshown).append((window.end_ms, isin))
        self._in_batch = newest
        return NoNews(frozenset(stale), frozenset(unshown))

    def learn(self) -> None:
        """Take in that the batch that ``stale`` looked at was published."""
        self._newest |= self._in_batch

    def forget(self) -> None:
        """Have all versions read again."""
        self._newest = {}

    def ask_for(self, isins: Set[str]) -> None:
        """Have instruments known. Raises redis.RedisError."""
        unknown = isins - self._newest.keys()
        for isin, value in stored_values(self._client, self._last, unknown):
            self._newest[isin] = (value or b"")[:VERSION_CHARS]


def stored_values(
    client: redis.Redis, key: str, fields: Iterable[str]
) -> Iterator[tuple[str, bytes | None]]:
    """Yield fields of a hash and their values, in order. Raises redis.RedisError."""
    in_order = sorted(fields)
    for begin in range(0, len(in_order), _ASKED_AT_ONCE):
        some = in_order[begin : begin + _ASKED_AT_ONCE]
        values = cast("list[bytes | None]", client.hmget(key, some))
        yield from zip(some, values, strict=True)
