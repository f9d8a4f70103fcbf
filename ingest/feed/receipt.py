"""The receipt a feed leaves behind, to be reconciled with the log later. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

import orjson
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from ingest.process.redact import problems_of
from ingest.tradelog.contract import AppendTally

VERSION: Literal[1] = 1


class InvalidReceipt(ValueError):
    """A receipt that cannot be read; the message names field, value and rule."""


def _check_tally(tally: AppendTally) -> AppendTally:
    first, last = tally.first, tally.last
    if min(tally.acknowledged, tally.in_doubt, first or 0, last or 0) < 0:
        raise ValueError("no number may be below 0")
    if (first is None) != (last is None):
        raise ValueError("there is a first if, and only if, there is a last")
    if first is not None and last is not None and first > last:
        raise ValueError("first must not be after last")
    return tally


Count = Annotated[int, Field(ge=0)]
Tally = Annotated[AppendTally, AfterValidator(_check_tally)]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What one feed appended to one log, as of ``written_ms``.

    While ``ended`` is false the feed runs, or was killed: then it may have appended
    more than is told here. The times are those of the feed's machine.
    """

    version: Literal[1] = field(default=VERSION, kw_only=True)
    log_id: Annotated[str, Field(min_length=1)]
    """Identity of the log (``LogInfo.log_id``)."""
    started_ms: Count
    written_ms: Count
    """When this was written: once ``ended``, the feed's end."""
    ended: bool
    """Whether the feed is over and every number here final."""
    refused: Mapping[str, Count]
    """Entries that the log could never take, by reason; they are not in it."""
    dropped_at_cap: Count
    """Entries the feed dropped from the log's beginning to keep it within its cap."""
    partitions: Annotated[tuple[Tally, ...], Field(min_length=1)]
    """What became of all others, by partition."""

    def encode(self) -> bytes:
        """Return the receipt as JSON, for people and programs."""
        return orjson.dumps(self, option=orjson.OPT_INDENT_2) + b"\n"

    @classmethod
    def decode(cls, raw: bytes) -> "Receipt":
        """Read what ``encode`` wrote. Raises InvalidReceipt."""
        try:
            return _RECEIPTS.validate_json(raw, strict=True)
        except ValidationError as error:
            raise InvalidReceipt(problems_of(error)) from None


_RECEIPTS = TypeAdapter(Receipt)
