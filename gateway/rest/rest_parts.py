"""What the routers of one listener share: rights, stores, turns, and parameters."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import orjson
from fastapi import Path, Query, Request

from archive.contract.archive_gap import ArchiveGap
from gateway.http.authorization import Caller, Permit
from gateway.http.built_once import Builds
from gateway.http.conditional import ConditionalAnswers
from gateway.http.parameters import LATEST_MS
from gateway.http.problems import unavailable
from gateway.live_stream import Stores
from gateway.rest.selection import resolve
from gateway.stream.board import Board
from gateway.stream.statuses.status_board import StatusBoard
from gateway.upstream.archive_visit import visiting
from gateway.upstream.archived_windows import ArchiveUnreadable

MOST_GAPS = 100
"""So many are in an answer at most, the oldest; what is damaged comes first."""

InstrumentKey = Annotated[
    str,
    Path(
        description="an ISIN, or a code of the instrument table",
        examples=["KR7005930003"],
    ),
]


def moment(name: str, description: str) -> Any:
    """Describe a parameter that is a time in ms."""
    return Query(alias=name, ge=0, le=LATEST_MS, description=description)


def limited(most: int, description: str) -> Any:
    """Describe a parameter that says how many are wanted at most."""
    return Query(ge=1, le=most, description=description)


@dataclass(frozen=True, slots=True)
class RestParts:
    """The parts. A ``quick`` answer waits for no ``deep`` one, which looks far back."""

    permit: Permit
    answer: ConditionalAnswers
    board: Board
    statuses: StatusBoard
    stores: Stores
    quick: Builds
    deep: Builds

    def instrument(self, request: Request, key: str) -> tuple[Caller, str]:
        """Return who asks, and the ISIN of the instrument he names. Raises Problem."""
        caller = self.permit(request)
        isin = resolve(key, caller.instruments)
        caller.check_allowed(isin, key)
        return caller, isin


@contextmanager
def reading_archive(caller: Caller) -> Iterator[None]:
    """Charge a caller what is read of the archive in the block.

    Raises Problem if it cannot be read.
    """
    try:
        with visiting(caller.address, caller.charge):
            yield
    except ArchiveUnreadable as error:
        raise unavailable(str(error)) from None


def gaps_object(gaps: Sequence[ArchiveGap]) -> bytes:
    """Encode for clients what an answer of the archive lacks, and why."""
    chosen = sorted(gaps, key=lambda gap: not gap.is_damage)[:MOST_GAPS]
    return orjson.dumps(
        [
            {
                "kind": gap.kind,
                "after": gap.after_ms,
                "before": gap.before_ms,
                "windows": gap.windows,
            }
            for gap in gaps
            if gap in chosen
        ]
    )


def data_object(bodies: Sequence[bytes]) -> bytes:
    """Encode a list of finished JSON objects for clients."""
    return b'{"count":%d,"data":[%b]}' % (len(bodies), b",".join(bodies))
