"""The receipt a feed has left behind, read to be reconciled with the log. Pure.

Its form is that of ``tickthrottle_client/receipt_v1.py``, which whoever appends writes.
"""

from dataclasses import asdict

from pydantic import TypeAdapter, ValidationError

from ingest.process.redact import problems_of
from tickthrottle_client.receipt_v1 import UNSENT, AppendTally, Receipt

__all__ = ["UNSENT", "Receipt"]


_RECEIPTS = TypeAdapter(Receipt)
_COUNTS = ("started_ms", "written_ms", "dropped_at_cap")


class InvalidReceipt(ValueError):
    """A receipt that cannot be read; the message names field, value and rule."""


def read_receipt(raw: bytes) -> Receipt:
    """Read what ``Receipt.encode`` wrote. Raises InvalidReceipt."""
    try:
        receipt = _RECEIPTS.validate_json(raw, strict=True)
    except ValidationError as error:
        raise InvalidReceipt(problems_of(error)) from None
    if not receipt.log_id:
        raise InvalidReceipt("log_id '': must not be empty")
    if not receipt.partitions:
        raise InvalidReceipt("partitions []: there is one at least")
    counts = {name: getattr(receipt, name) for name in _COUNTS}
    counts |= {f"refused.{reason}": count for reason, count in receipt.refused.items()}
    for name, count in counts.items():
        if count < 0:
            raise InvalidReceipt(f"{name} {count}: must not be below 0")
    for number, tally in enumerate(receipt.partitions):
        broken = _broken_tally_rule(tally)
        if broken is not None:
            shown = ", ".join(f"{name}={it}" for name, it in asdict(tally).items())
            raise InvalidReceipt(f"partitions.{number} {shown}: {broken}")
    return receipt


def _broken_tally_rule(tally: AppendTally) -> str | None:
    first, last = tally.first, tally.last
    if min(tally.acknowledged, tally.in_doubt, first or 0, last or 0) < 0:
        return "no number may be below 0"
    if (first is None) != (last is None):
        return "there is a first if, and only if, there is a last"
    if first is not None and last is not None and first > last:
        return "first must not be after last"
    return None
