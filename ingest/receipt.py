"""PURE: the receipt a feed leaves behind, to be reconciled with the log later."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self, TypeGuard

import orjson

from ingest.log import Tally

VERSION = 1


class InvalidReceipt(ValueError):
    """A receipt that cannot be read; the message names field, value and rule."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What one feed appended to one log, as of ``written_ms``.

    While ``ended`` is false the feed runs, or was killed: then it may have appended
    more than is told here. The times are those of the feed's machine.
    """

    log_id: str
    """Identity of the log (``LogInfo.log_id``)."""
    started_ms: int
    written_ms: int
    """When this was written: once ``ended``, the feed's end."""
    ended: bool
    """Whether the feed is over and every number here final."""
    refused: Mapping[str, int]
    """Entries that the log could never take, by reason; they are not in it."""
    dropped_at_cap: int
    """Entries the feed dropped from the log's beginning to keep it within its cap."""
    partitions: tuple[Tally, ...]
    """What became of all others, by partition."""

    def encode(self) -> bytes:
        """Return the receipt as JSON, for people and programs."""
        fields = {
            "version": VERSION,
            "log_id": self.log_id,
            "started_ms": self.started_ms,
            "written_ms": self.written_ms,
            "ended": self.ended,
            "refused": dict(self.refused),
            "dropped_at_cap": self.dropped_at_cap,
            "partitions": [asdict(tally) for tally in self.partitions],
        }
        return orjson.dumps(fields, option=orjson.OPT_INDENT_2) + b"\n"

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        """Read what ``encode`` wrote. Raises InvalidReceipt."""
        try:
            fields = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            raise InvalidReceipt(f"the receipt is no JSON: {error}") from None
        receipt = _Fields("", fields)
        version = receipt.number("version")
        if version != VERSION:
            raise InvalidReceipt(f"version {version}: only {VERSION} can be read")
        return cls(
            log_id=receipt.text("log_id"),
            started_ms=receipt.number("started_ms"),
            written_ms=receipt.number("written_ms"),
            ended=receipt.truth("ended"),
            refused=receipt.counts("refused"),
            dropped_at_cap=receipt.number("dropped_at_cap"),
            partitions=tuple(
                _tally(_Fields(f"partitions[{number}].", entry))
                for number, entry in enumerate(receipt.entries("partitions"))
            ),
        )


def _tally(fields: "_Fields") -> Tally:
    tally = Tally(
        acknowledged=fields.number("acknowledged"),
        first=fields.place("first"),
        last=fields.place("last"),
        in_doubt=fields.number("in_doubt"),
    )
    if (tally.first is None) != (tally.last is None):
        raise fields.wrong("first", "there is a first if, and only if, there is a last")
    if tally.first is not None and tally.last is not None and tally.first > tally.last:
        raise fields.wrong("first", f"must not be after last, which is {tally.last}")
    return tally


class _Fields:
    """The fields of one JSON object, each checked as it is taken."""

    def __init__(self, path: str, found: Any) -> None:
        self._path = path
        if not isinstance(found, dict):
            name = path.removesuffix(".") or "the receipt"
            raise InvalidReceipt(f"{name} {found!r}: must be a JSON object")
        self._found: dict[str, Any] = found

    def wrong(self, name: str, rule: str) -> InvalidReceipt:
        value = self._found.get(name)
        return InvalidReceipt(f"{self._path}{name} {value!r}: {rule}")

    def text(self, name: str) -> str:
        value = self._found.get(name)
        if isinstance(value, str) and value:
            return value
        raise self.wrong(name, "must be a text that is not empty")

    def truth(self, name: str) -> bool:
        value = self._found.get(name)
        if isinstance(value, bool):
            return value
        raise self.wrong(name, "must be true or false")

    def number(self, name: str) -> int:
        value = self._found.get(name)
        if _is_count(value):
            return value
        raise self.wrong(name, "must be a whole number from 0 on")

    def place(self, name: str) -> int | None:
        if name in self._found and self._found[name] is None:
            return None
        return self.number(name)

    def counts(self, name: str) -> dict[str, int]:
        value = self._found.get(name)
        if isinstance(value, dict) and all(map(_is_count, value.values())):
            return value
        raise self.wrong(name, "must be an object of whole numbers from 0 on")

    def entries(self, name: str) -> list[Any]:
        value = self._found.get(name)
        if isinstance(value, list) and value:
            return value
        raise self.wrong(name, "must be a list that is not empty")


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
