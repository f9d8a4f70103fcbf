"""The ledger: what became of every trade, per partition of the log. Pure.

``read + extra = published + superseded + stale + not_last + refused + skipped``, and
what was read is what the log itself counted. Without a decoder an entry is a trade:
``extra`` and ``skipped`` are 0. In shares and in money, ``read = published + superseded
+ stale + not_last``: nobody knows what refused trades come to. The publish script
writes the ledger with the windows, in the same step; this module reads it, and says
whether it balances.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import orjson

from throttle.contract.cut import Cut
from throttle.contract.group import decimal_text, units

# In the hash a sum is several numbers, so that the server can add to each of them.
_LIMB = 10**9


class Turnover(NamedTuple):
    """What some trades come to, in whole numbers of 10^-36."""

    volume: int = 0
    value: int = 0

    def plus(self, volume: int, value: int) -> "Turnover":
        """Return what comes of it with other trades."""
        return Turnover(self.volume + volume, self.value + value)

    def minus(self, other: "Turnover") -> "Turnover":
        """Return what is left without the other's trades, which are among them."""
        return Turnover(self.volume - other.volume, self.value - other.value)

    def words(self) -> str:
        """Return both in words, with every digit."""
        volume, value = (decimal_text(number).decode() for number in self)
        return f"volume {volume} and value {value}"


NOTHING = Turnover()
"""What no trades come to."""


@dataclass(frozen=True, slots=True)
class Books:
    """How many entries were read, and what became of their trades.

    ``extra`` are trades beyond the first of an entry, ``skipped`` entries that are no
    trades, by the decoder's name for them. ``blanks`` are positions of the log that
    hold no entry, ``unkept`` those refused trades that no dead letter was kept of.
    ``unknown_instrument`` are trades of instruments that an instrument table did not
    have: they are published as any others. ``not_last`` are trades that say that they
    do not set the last price. ``taken_back`` are trades that later entries have taken
    back, each counted before as what it was then; ``unknown_target`` are entries that
    name a trade that was not found. ``volume`` and ``value`` are what trades come to,
    by ``OUTCOMES``, in whole numbers of 10^-36; books with the same counts are equal.
    """

    read: int = 0
    published: int = 0
    superseded: int = 0
    stale: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    blanks: int = 0
    unkept: int = 0
    extra: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    unknown_instrument: int = 0
    not_last: int = 0
    taken_back: int = 0
    unknown_target: int = 0
    volume: Mapping[str, int] = field(default_factory=dict, compare=False)
    value: Mapping[str, int] = field(default_factory=dict, compare=False)

    def since(self, earlier: "Books") -> "Books":
        """Return what was added to earlier books of the same account."""
        values: dict[str, Any] = {
            **{n: getattr(self, n) - getattr(earlier, n) for n in COUNTS},
            **{n: _less(getattr(self, n), getattr(earlier, n)) for n in _MAPPINGS},
        }
        return Books(**values)

    @property
    def accounted(self) -> int:
        """Trades of which it is known what became of them; all, if it balances."""
        by_name = sum(self.refused.values()) + sum(self.skipped.values())
        became = self.published + self.superseded + self.stale + self.not_last
        return became + by_name

    @property
    def unaccounted(self) -> int:
        """Trades read of which nobody knows what became of them; 0 if it balances."""
        return self.read + self.extra - self.accounted

    @classmethod
    def decode(cls, values: Mapping[str, Any]) -> "Books":
        """Decode the object a batch's entry holds per partition.

        A job of a version before does not know what was added since: that is 0.
        Raises KeyError if they do not say what was read.
        """
        counts = {**dict.fromkeys(COUNTS, 0), "read": values["read"], **values}
        decoded: dict[str, Any] = {name: int(counts[name]) for name in COUNTS}
        for name in BY_NAME:
            # Lua writes an empty table as a list or an object, as it likes.
            pairs = dict(values.get(name, ())).items()
            decoded[name] = {key: int(count) for key, count in pairs}
        for name in AMOUNTS:
            pairs = dict(values.get(name, ())).items()
            decoded[name] = {key: units(text) for key, text in pairs}
        return cls(**decoded)

    def to_object(self) -> dict[str, Any]:
        """Return them for JSON; ``decode`` gives back equal ones."""
        return {
            **{of.name: getattr(self, of.name) for of in fields(self)},
            **{name: dict(getattr(self, name)) for name in BY_NAME},
            **{name: _texts(getattr(self, name)) for name in AMOUNTS},
        }


BY_NAME = ("refused", "skipped")
"""What has a number for each reason or name."""

AMOUNTS = ("volume", "value")
"""What the trades come to, by what became of them."""

OUTCOMES = ("read", "published", "superseded", "stale", "not_last")
"""What has a volume and a value."""

_MAPPINGS = (*BY_NAME, *AMOUNTS)

COUNTS = tuple(of.name for of in fields(Books) if of.name not in _MAPPINGS)
"""What is one number in each partition's books."""


def imbalance(name: str, books: Books) -> Iterator[str]:
    """Say in one sentence that books do not balance; nothing if they do."""
    if books.unaccounted:
        yield (
            f"{name}: {books.read + books.extra:,} trades were read, "
            f"{books.accounted:,} are accounted for"
        )
    for amount in AMOUNTS:
        became = dict(getattr(books, amount))
        read, accounted = became.pop("read", 0), sum(became.values())
        if read != accounted:
            texts = [decimal_text(number).decode() for number in (read, accounted)]
            yield f"{name}: of a {amount} of {texts[0]}, {texts[1]} is accounted for"


def add_up(books: Iterable[Books]) -> Books:
    """Return the sum of books, reason by reason."""
    parts = list(books)
    values: dict[str, Any] = {
        name: sum(getattr(part, name) for part in parts) for name in COUNTS
    }
    for name in _MAPPINGS:
        counter: Counter[str] = Counter()
        for part in parts:
            counter.update(getattr(part, name))
        values[name] = dict(sorted(counter.items()))
    return Books(**values)


def stored_amounts(amounts: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Return what is added to a partition's fields of the hash for such ``AMOUNTS``."""
    stored = {}
    for amount, by_outcome in amounts.items():
        for outcome, number in by_outcome.items():
            sign, rest, limb = 1 if number > 0 else -1, abs(number), 0
            while rest:
                rest, part = divmod(rest, _LIMB)
                stored[f"{amount}:{outcome}:{limb}"] = sign * part
                limb += 1
    return stored


def encode_amounts(
    amounts: Mapping[str, Mapping[str, int]],
) -> dict[str, dict[str, str]]:
    """Return how a batch's entry holds them: as decimal text."""
    return {name: _texts(by_outcome) for name, by_outcome in amounts.items()}


def _texts(by_outcome: Mapping[str, int]) -> dict[str, str]:
    return {outcome: decimal_text(n).decode() for outcome, n in by_outcome.items()}


def _less(counts: Mapping[str, int], earlier: Mapping[str, int]) -> dict[str, int]:
    names = sorted({*counts, *earlier})
    left = {name: counts.get(name, 0) - earlier.get(name, 0) for name in names}
    return {name: count for name, count in left.items() if count}


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
            partitions = upto.partitions
            fields_of: dict[str, dict[str, bytes]] = defaultdict(dict)
            for name, value in sorted(values.items()):
                number, _, of = name.partition(":")
                fields_of[number][of] = value
            return cls(
                job,
                since,
                upto,
                int(values["batches"]),
                int(values["windows"]),
                tuple(_books(fields_of[str(p)]) for p in partitions),
                tuple(_number(values, f"{p}:log") for p in partitions),
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

    @property
    def off_by(self) -> int:
        """The number of trades by which it does not balance; 0 is good."""
        pairs = zip(self.partitions, self.log, strict=True)
        return sum(abs(b.unaccounted) + self._uncounted(b, n) for b, n in pairs)

    def problems(self) -> list[str]:
        """Say in one sentence each where the books do not balance; none is good."""
        problems: list[str] = []
        accounts = zip(self.upto.partitions, self.partitions, self.log, strict=True)
        for p, books, counted in accounts:
            problems += imbalance(f"partition {p}", books)
            if self._uncounted(books, counted):
                problems.append(
                    f"partition {p}: the log counted {counted} trades up to the window "
                    f"{self.checked_ms}, {books.read} were read up to "
                    f"{self.upto.end_ms}"
                )
        return problems

    def _uncounted(self, books: Books, counted: int | None) -> int:
        if counted is None:
            return 0
        # Compared at an older window, the log can only have counted fewer by then.
        is_newest = self.checked_ms == self.upto.end_ms
        return abs(counted - books.read) if is_newest else max(0, counted - books.read)


@dataclass(frozen=True, slots=True)
class BatchEntry:
    """One published batch: its cuts and its books.

    ``offset`` is that of its last window in the published stream, so its windows have
    the offsets ``(offset - windows, offset]``. ``batch`` is Spark's number and
    ``term`` the job's, when it was published. ``partitions[i]`` are the books of the
    i-th partition of ``end``. ``instruments_digest`` names the content of the
    instrument table that it was joined with, empty if there was none.
    """

    offset: int
    batch: int
    term: int
    start: Cut
    end: Cut
    windows: int
    partitions: tuple[Books, ...]
    instruments_digest: str = ""

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
                tuple(Books.decode(books) for books in orjson.loads(fields[b"books"])),
                fields.get(b"instruments", b"").decode(),
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


def _books(stored: Mapping[str, bytes]) -> Books:
    """Decode the fields of a partition, without its number before them."""
    by_name: dict[str, dict[str, int]] = {name: {} for name in BY_NAME}
    by_name |= {name: dict.fromkeys(OUTCOMES, 0) for name in AMOUNTS}
    for name, value in stored.items():
        of, _, which = name.partition(":")
        if of in AMOUNTS:
            outcome, _, limb = which.partition(":")
            by_name[of][outcome] += int(value) * _LIMB ** int(limb)
        elif of in by_name:
            by_name[of][which] = int(value)
    # A counter that was never raised is not there.
    counts: dict[str, Any] = {name: int(stored.get(name, 0)) for name in COUNTS}
    return Books(**(counts | by_name))
