"""What a request to append trades holds, and what of it is refused. Pure."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.admission.tokens import TokenGrant
from ingest.files.records import numbered_lines, written_lines
from ingest.sources.trade_lines import LineReader, exact_json
from ingest.trade import InvalidTrade
from intake.settings import MOST_TRADES

NOT_ALLOWED = "not_allowed"
"""Why a trade is refused whose instrument is not in the token."""

SHOWN_REFUSALS = 20
"""So many refusals are told in words; all of them are counted."""

JSON = "application/json"
LINES = ("application/x-ndjson", "application/jsonl", "application/x-jsonlines")


class BadBody(ValueError):
    """A body that cannot be read as a whole; ``status`` is what it is answered with."""

    def __init__(self, status: int, rule: str) -> None:
        super().__init__(rule)
        self.status = status


@dataclass(slots=True)
class ReadBody:
    """The trades of a body, as the log holds them, and its refusals by reason."""

    entries: list[tuple[str, bytes]] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    refusals: list[dict[str, Any]] = field(default_factory=list)

    def refuse(self, index: int, reason: str, message: str) -> None:
        """Count a refusal; ``index`` is that of the trade in the body, from 0."""
        self.reasons[reason] += 1
        if len(self.refusals) < SHOWN_REFUSALS:
            shown = {"index": index, "reason": reason, "message": message}
            self.refusals.append(shown)

    def to_answer(self) -> dict[str, Any]:
        """Return what is told once the accepted ones are in the log."""
        return {
            "accepted": len(self.entries),
            "refused": self.reasons.total(),
            "reasons": dict(self.reasons),
            "refusals": self.refusals,
        }


def read_body(
    body: bytes, content_type: str, reader: LineReader, grant: TokenGrant
) -> ReadBody:
    """Read a body's trades. Raises BadBody if it cannot be read as a whole.

    A trade that breaks a rule, or that the token does not cover, is refused alone.
    """
    result = ReadBody()
    for index, item in enumerate(items_of(body, content_type, "trades")):
        if index >= MOST_TRADES:
            raise BadBody(413, f"a request may have {MOST_TRADES} trades")
        try:
            isin, payload = _read(item, reader)
        except InvalidTrade as error:
            result.refuse(index, error.reason, str(error))
            continue
        if grant.allows(isin):
            result.entries.append((isin, payload))
        else:
            result.refuse(index, NOT_ALLOWED, f"isin {isin}: not in your token")
    if not result.entries and not result.reasons:
        raise BadBody(400, "the body holds no trade")
    return result


def items_of(body: bytes, content_type: str, name: str) -> Iterable[Any]:
    """Return a body's lines, bytes or an InvalidTrade each, or what it lists, decoded.

    ``name`` is what it is a list of. Raises BadBody.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind in LINES:
        return _lines(body)
    if kind == JSON:
        return _list_of(body, name)
    shown = kind[:60] or "none"
    raise BadBody(415, f"content-type {shown}: must be {JSON} or {LINES[0]}")


def _lines(body: bytes) -> Iterator[bytes | InvalidTrade]:
    for lines in numbered_lines(iter([body])):
        for _, line in written_lines(lines):
            yield line


def _read(item: Any, reader: LineReader) -> tuple[str, bytes]:
    if isinstance(item, InvalidTrade):
        raise item
    if isinstance(item, bytes):
        return reader.read_line(item)
    if not isinstance(item, dict):
        shown = json.dumps(item, default=str)[:80]
        raise InvalidTrade("not_object", "trade", shown, "is not a JSON object")
    return reader.read_fields(item)


def _list_of(body: bytes, name: str) -> list[Any]:
    try:
        decoded = exact_json(body)
    except (ValueError, RecursionError) as error:
        raise BadBody(400, f"the body is not JSON: {str(error)[:80]}") from None
    if isinstance(decoded, Mapping):
        decoded = decoded.get(name)
    if not isinstance(decoded, list):
        rule = f'the body must be a list of {name}, or an object with "{name}"'
        raise BadBody(400, rule)
    return decoded
