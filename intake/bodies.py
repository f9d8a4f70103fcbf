"""What a request to append trades holds, and what of it is refused. Pure."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
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
    kind = content_type.partition(";")[0].strip().lower()
    found = ReadBody()
    for index, read in _readers(body, kind, reader):
        if index >= MOST_TRADES:
            raise BadBody(413, f"a request may have {MOST_TRADES} trades")
        try:
            isin, payload = read()
        except InvalidTrade as error:
            found.refuse(index, error.reason, str(error))
            continue
        if grant.allows(isin):
            found.entries.append((isin, payload))
        else:
            found.refuse(index, NOT_ALLOWED, f"isin {isin}: not in your token")
    if not found.entries and not found.reasons:
        raise BadBody(400, "the body holds no trade")
    return found


_Read = Callable[[], tuple[str, bytes]]


def _readers(body: bytes, kind: str, reader: LineReader) -> Iterator[tuple[int, _Read]]:
    if kind in LINES:
        index = 0
        for lines in numbered_lines(iter([body])):
            for _, line in written_lines(lines):
                yield index, lambda line=line: _read_line(line, reader)  # type: ignore[misc]
                index += 1
    elif kind == JSON:
        for index, fields in enumerate(_trades_of(body)):
            yield index, lambda fields=fields: _read(fields, reader)  # type: ignore[misc]
    else:
        shown = kind[:60] or "none"
        raise BadBody(415, f"content-type {shown}: must be {JSON} or {LINES[0]}")


def _read_line(line: bytes | InvalidTrade, reader: LineReader) -> tuple[str, bytes]:
    if isinstance(line, InvalidTrade):
        raise line
    return reader.read_line(line)


def _read(fields: Any, reader: LineReader) -> tuple[str, bytes]:
    if not isinstance(fields, dict):
        shown = json.dumps(fields, default=str)[:80]
        raise InvalidTrade("not_object", "trade", shown, "is not a JSON object")
    return reader.read_fields(fields)


def _trades_of(body: bytes) -> list[Any]:
    try:
        decoded = exact_json(body)
    except (ValueError, RecursionError) as error:
        raise BadBody(400, f"the body is not JSON: {str(error)[:80]}") from None
    if isinstance(decoded, Mapping):
        decoded = decoded.get("trades")
    if not isinstance(decoded, list):
        rule = 'the body must be a list of trades, or an object with "trades"'
        raise BadBody(400, rule)
    return decoded
