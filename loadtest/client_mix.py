"""Who listens: how many clients of which kind, and what each of them wants. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random
from typing import Literal, NamedTuple, TypeAlias, get_args

from ingest.sources.market import popularity
from tickthrottle_client.tick_v1 import ALL

Kind: TypeAlias = Literal[
    "watch", "compact", "market", "slow", "stalled", "reconnecting", "sse", "polling"
]
KINDS: tuple[Kind, ...] = get_args(Kind)

WATCH_ONLY: Mapping[Kind, float] = {"watch": 1.0}

CLIENTS_PER_ADDRESS = 500
"""So many clients share one loopback address."""

_ADDRESSES = 250


class Member(NamedTuple):
    """One client. ``keys`` are ISINs, or ``*`` alone.

    ``every_s``: a slow or stalled reader pauses for so long, a reconnecting one is cut
    about every so often, a polling one asks every so often. ``address`` is the loopback
    address that it connects from.
    """

    number: int
    kind: Kind
    keys: tuple[str, ...]
    every_s: float = 0.0
    address: str | None = None


@dataclass(frozen=True)
class Audience:
    """So many ``clients``, of kinds in the shares of ``mix``.

    All but those of kind ``market`` watch ``keys`` instruments, drawn by how much they
    trade; so do ``slow`` and ``stalled`` ones, unless ``slow_watch_market``. Equal
    arguments give equal members. Raises ValueError naming field, value and rule.
    """

    clients: int
    mix: Mapping[Kind, float] = field(default_factory=lambda: WATCH_ONLY)
    keys: int = 30
    poll_every_s: float = 10.0
    reconnect_every_s: float = 30.0
    slow_pause_s: float = 6.0
    stall_s: float = 30.0
    slow_watch_market: bool = True

    def __post_init__(self) -> None:
        for name in ("clients", "keys"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} {getattr(self, name)}: has to be at least 1")
        for name in ("poll_every_s", "reconnect_every_s", "slow_pause_s", "stall_s"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} {getattr(self, name)}: has to be above 0")
        if self.clients > _ADDRESSES * CLIENTS_PER_ADDRESS:
            raise ValueError(
                f"clients {self.clients}: at most {_ADDRESSES} addresses with "
                f"{CLIENTS_PER_ADDRESS} each"
            )

    def counts(self) -> dict[Kind, int]:
        """Return how many there are of each kind: by largest remainder, all of them."""
        total = sum(self.mix.values())
        exact = {kind: self.clients * n / total for kind, n in self.mix.items()}
        counts = {kind: int(share) for kind, share in exact.items()}
        left = self.clients - sum(counts.values())
        by_rest = sorted(exact, key=lambda kind: counts[kind] - exact[kind])
        for kind in by_rest[:left]:
            counts[kind] += 1
        return {kind: counts[kind] for kind in KINDS if counts.get(kind)}

    def members(self, instruments_by_popularity: Sequence[str]) -> tuple[Member, ...]:
        """Return every client, kinds evenly mixed; the most traded instrument is first.

        Raises ValueError if there are fewer instruments than ``keys``.
        """
        if self.keys > len(instruments_by_popularity):
            raise ValueError(
                f"keys {self.keys}: there are "
                f"{len(instruments_by_popularity)} instruments"
            )
        chance = Random(1)
        kinds = [kind for kind, count in self.counts().items() for _ in range(count)]
        chance.shuffle(kinds)
        lists = _watch_lists(instruments_by_popularity, self.keys, chance)
        return tuple(
            Member(
                number,
                kind,
                (ALL,) if self._has_all(kind) else next(lists),
                self._pace_s(kind),
                f"127.0.0.{2 + number // CLIENTS_PER_ADDRESS}",
            )
            for number, kind in enumerate(kinds)
        )

    def _has_all(self, kind: Kind) -> bool:
        return kind == "market" or (
            self.slow_watch_market and kind in ("slow", "stalled")
        )

    def _pace_s(self, kind: Kind) -> float:
        paces_s: dict[Kind, float] = {
            "slow": self.slow_pause_s,
            "stalled": self.stall_s,
            "reconnecting": self.reconnect_every_s,
            "polling": self.poll_every_s,
        }
        return paces_s.get(kind, 0.0)


def parse_mix(text: str) -> dict[Kind, float]:
    """Read ``watch:90,slow:10``: shares or counts, whatever they add up to.

    Raises ValueError naming the part, its value and the rule.
    """
    mix: dict[Kind, float] = {}
    for part in text.split(","):
        name, _, number = part.strip().partition(":")
        kind = next((kind for kind in KINDS if kind == name), None)
        if kind is None:
            raise ValueError(f"mix {part!r}: a kind is one of {', '.join(KINDS)}")
        if kind in mix:
            raise ValueError(f"mix {part!r}: {kind} is there twice")
        try:
            share = float(number)
        except ValueError:
            share = 0.0
        if not 0 < share < float("inf"):
            raise ValueError(f"mix {part!r}: after the colon, a number above 0")
        mix[kind] = share
    return mix


def _watch_lists(
    instruments: Sequence[str], keys: int, chance: Random
) -> Iterator[tuple[str, ...]]:
    """Draw lists of distinct instruments without end, by how much they trade."""
    weights = popularity(len(instruments))
    sums = list(accumulate(weights))
    places = range(len(instruments))
    while True:
        if keys > len(instruments) // 8:
            # Nearly all of them: an order drawn by weight, cut off.
            ages = [chance.expovariate(weight) for weight in weights]
            drawn = sorted(places, key=ages.__getitem__)[:keys]
        else:
            found: dict[int, None] = {}
            while len(found) < keys:
                for place in chance.choices(places, cum_weights=sums, k=keys):
                    if len(found) < keys:
                        found[place] = None
            drawn = list(found)
        yield tuple(sorted(instruments[place] for place in drawn))
