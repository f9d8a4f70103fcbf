"""What feeds were acknowledged, by the receipts they leave. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from ingest.receipt import Receipt

Span = tuple[int, int]
"""The position after which something begins, and its last one."""


@dataclass(frozen=True, slots=True)
class Appended:
    """What the receipts of all feeds say of one partition, together.

    The acknowledged entries lie in ``spans``, which do not overlap and go up. Behind
    ``open_after`` a feed that has not ended may have appended more; None if all have.
    """

    acknowledged: int
    in_doubt: int
    spans: tuple[Span, ...]
    open_after: int | None = None


def appended(receipts: Iterable[Receipt], partition: int) -> Appended:
    """Return what some receipts say of a partition."""
    acknowledged = in_doubt = 0
    spans: list[Span] = []
    # What running feeds have told last; None of one that had appended nothing yet.
    told: list[int | None] = []
    for receipt in receipts:
        if partition < len(receipt.partitions):
            tally = receipt.partitions[partition]
            acknowledged += tally.acknowledged
            in_doubt += tally.in_doubt
            if tally.first is not None and tally.last is not None:
                spans.append((tally.first - 1, tally.last))
            if not receipt.ended:
                told.append(tally.last)
    merged = _merged(spans)
    open_after = None
    if told and merged:
        first = merged[0][0]
        open_after = min(first if last is None else last for last in told)
    return Appended(acknowledged, in_doubt, merged, open_after)


def _merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    merged: list[Span] = []
    for after, upto in sorted(spans):
        if merged and after <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(upto, merged[-1][1])
        else:
            merged.append((after, upto))
    return tuple(merged)
