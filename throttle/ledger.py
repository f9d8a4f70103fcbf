"""The ledger: what became of every trade, per partition of the log.

``read = published + superseded + stale + refused``, and what was read is what the log
itself counted. The publish script writes it with the windows, in the same step; this
module reads it. Pure: it is given what Redis holds.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from throttle.cut import Cut

_REFUSED = "refused:"


@dataclass(frozen=True, slots=True)
class Books:
    """How many trades were read, and what became of them.

    ``blanks`` are positions of the log that hold no entry, so nothing was read there.
    """

    read: int = 0
    published: int = 0
    superseded: int = 0
    stale: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    blanks: int = 0

    @property
    def accounted(self) -> int:
        """Trades of which it is known what became of them; all, if it balances."""
        return (
            self.published + self.superseded + self.stale + sum(self.refused.values())
        )

    @classmethod
    def decode(cls, values: Mapping[str, Any]) -> "Books":
        """Decode the object a batch's entry holds per partition."""
        return cls(
            int(values["read"]),
            int(values["published"]),
            int(values["superseded"]),
            int(values["stale"]),
            # Lua writes an empty table as a list or an object, as it likes.
            {reason: int(n) for reason, n in dict(values["refused"]).items()},
            int(values.get("blanks", 0)),
        )

    def to_object(self) -> dict[str, Any]:
        """Return them for JSON; ``decode`` gives back equal ones."""
        return {
            "read": self.read,
            "published": self.published,
            "superseded": self.superseded,
            "stale": self.stale,
            "refused": dict(self.refused),
            "blanks": self.blanks,
        }


def add_up(books: Iterable[Books]) -> Books:
    """Return the sum of some books, reason by reason."""
    every = list(books)
    refused: Counter[str] = Counter()
    for one in every:
        refused.update(one.refused)
    return Books(
        sum(one.read for one in every),
        sum(one.published for one in every),
        sum(one.superseded for one in every),
        sum(one.stale for one in every),
        dict(sorted(refused.items())),
        sum(one.blanks for one in every),
    )


@dataclass(frozen=True, slots=True)
class Ledger:
    """One job's books, from the cut ``since`` to the cut ``upto``.

    ``partitions[i]`` are those of the i-th partition of ``upto``, and ``log[i]`` is how
    many entries the log itself counted in it between ``since`` and the window that
    ended at ``checked_ms``; None where it was not asked.
    """

    job: str
    since: Cut
    upto: Cut
    batches: int
    windows: int
    partitions: tuple[Books, ...]
    log: tuple[int | None, ...]
    checked_ms: int | None

    @classmethod
    def decode(cls, job: str, stored: Mapping[bytes, bytes]) -> "Ledger | None":
        """Decode the hash ``Keys.ledger``; None if there is none yet.

        Raises ValueError for anything the throttle would not have written.
        """
        if not stored:
            return None
        values = {key.decode(): value for key, value in stored.items()}
        try:
            since, upto = _cut(values["since"]), _cut(values["upto"])
            every = upto.partitions
            return cls(
                job,
                since,
                upto,
                int(values["batches"]),
                int(values["windows"]),
                tuple(_books(values, p) for p in every),
                tuple(_number(values, f"{p}:log") for p in every),
                _number(values, "checked"),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"ledger of {job}: {error!r}") from None

    @property
    def total(self) -> Books:
        """The books of all partitions together."""
        return add_up(self.partitions)

    @property
    def refusal_reasons(self) -> tuple[str, ...]:
        """Every reason for which a trade was refused, in alphabetical order."""
        return tuple(self.total.refused)

    def problems(self) -> list[str]:
        """Say in one sentence each where the books do not balance; none is good."""
        return [
            problem
            for p, books, counted in zip(
                self.upto.partitions, self.partitions, self.log, strict=True
            )
            for problem in self._problems_of(f"partition {p}", books, counted)
        ]

    def _problems_of(
        self, name: str, books: Books, counted: int | None
    ) -> Iterable[str]:
        if books.read != books.accounted:
            yield (
                f"{name}: {books.read} trades were read, "
                f"{books.accounted} are accounted for"
            )
        if counted is None:
            return
        # Compared at an older window, the log can only have counted fewer by then.
        compared_now = self.checked_ms == self.upto.end_ms
        if counted > books.read or (compared_now and counted < books.read):
            yield (
                f"{name}: the log counted {counted} trades up to the window "
                f"{self.checked_ms}, {books.read} were read up to {self.upto.end_ms}"
            )


@dataclass(frozen=True, slots=True)
class BatchEntry:
    """One published batch: its cuts and its books.

    ``offset`` is that of its last window in the published stream, so its windows have
    the offsets ``(offset - windows, offset]``. ``batch`` is Spark's number and
    ``term`` the job's, when it was published. ``partitions[i]`` are the books of the
    i-th partition of ``end``.
    """

    offset: int
    batch: int
    term: int
    start: Cut
    end: Cut
    windows: int
    partitions: tuple[Books, ...]

    @classmethod
    def decode(cls, entry_id: bytes, fields: Mapping[bytes, bytes]) -> "BatchEntry":
        """Decode one entry of the stream ``Keys.batches``.

        Raises ValueError for anything the throttle would not have written.
        """
        try:
            return cls(
                int(entry_id.partition(b"-")[0]),
                int(fields[b"batch"]),
                int(fields[b"term"]),
                _cut(fields[b"start"]),
                _cut(fields[b"end"]),
                int(fields[b"windows"]),
                tuple(Books.decode(one) for one in orjson.loads(fields[b"books"])),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"batch {entry_id!r}: {error!r}") from None

    @property
    def total(self) -> Books:
        """The books of all partitions together."""
        return add_up(self.partitions)


def _cut(text: bytes) -> Cut:
    return Cut.from_offset(orjson.loads(text))


def _number(values: Mapping[str, bytes], name: str) -> int | None:
    return int(values[name]) if name in values else None


def _books(values: Mapping[str, bytes], partition: int) -> Books:
    # A counter that was never raised is not there.
    def count(name: str) -> int:
        return int(values.get(f"{partition}:{name}", 0))

    prefix = f"{partition}:{_REFUSED}"
    refused = {
        name.removeprefix(prefix): int(value)
        for name, value in sorted(values.items())
        if name.startswith(prefix)
    }
    return Books(
        count("read"),
        count("published"),
        count("superseded"),
        count("stale"),
        refused,
        count("blanks"),
    )
