"""How the rate of a feed goes over time: steps, ramps, an opening, bursts. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, count
from math import exp, floor, inf, isfinite
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import InstanceOf

from ingest.files.file_form import read_by

MAX_RATE = 1_000_000.0
"""Most trades a second of a part."""

SLOT_US = 10_000
"""Time is cut into slots of 10 ms; each has its whole number of trades exactly."""

MAX_SECONDS = 604_800.0
"""Longest profile that has an end: a week."""

OPENING_PEAK = 6.0
"""An opening begins with this many times the rate that it settles to.

The Korean market had 6.7 times as many in April and May 2020: 1,330 a second, then 200.
"""

OPENING_DECAYS = 10.0
"""Within an opening, what is above its rate falls to a third (1/e) this many times."""

RULE = (
    "must be RATE:TIME (900:60s), FROM..TO:TIME (900..5000:60s), "
    "opening(RATE):TIME (opening(900):600s) or, on top of those, "
    "COUNT/TIME@EVERY (1700/100ms@30s); a time is a number with ms, s, m or h"
)

_ENDLESS = "only the last rate may be without a time"
_NUMBER = r"\d+(?:_\d+)*(?:\.\d+)?"
_TIME = rf"({_NUMBER})(ms|s|m|h)"
_STEP = re.compile(rf"({_NUMBER})(?::{_TIME})?")
_RAMP = re.compile(rf"({_NUMBER})\.\.({_NUMBER}):{_TIME}")
_OPENING = re.compile(rf"opening\(({_NUMBER})\):{_TIME}")
_BURST = re.compile(rf"({_NUMBER})/{_TIME}@{_TIME}")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0}

Shape: TypeAlias = Literal["ramp", "opening"]


class InvalidProfile(ValueError):
    """A profile that breaks a rule; names the part, its value and the rule."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a profile: from one rate to another. A step is a ramp to itself."""

    from_rate: float
    to_rate: float
    seconds: float
    """Infinite for a rate that stays for ever."""
    shape: Shape = "ramp"
    """``ramp``: in a straight line. ``opening``: falls fast at first, then slower."""

    def rate(self, at_s: float) -> float:
        """Return the trades a second at a time since the stretch began."""
        if self.from_rate == self.to_rate:
            return self.from_rate
        if self.shape == "opening":
            return self.to_rate + self._above * exp(-at_s / self._decay_s)
        return self.from_rate - self._above * at_s / self.seconds

    def trades(self, until_s: float) -> float:
        """Return how many trades fall due from the stretch's beginning to a time."""
        if self.from_rate == self.to_rate:
            return self.from_rate * until_s if self.from_rate else 0.0
        if self.shape == "opening":
            gone = 1 - exp(-until_s / self._decay_s)
            return self.to_rate * until_s + self._above * self._decay_s * gone
        return self.from_rate * until_s - self._above * until_s**2 / self.seconds / 2

    @property
    def words(self) -> str:
        """The stretch for people."""
        lasts = "" if self.seconds == inf else f" for {self.seconds:g} s"
        if self.shape == "opening":
            return f"an opening of {self.to_rate:,g}/s{lasts}"
        if self.from_rate == self.to_rate:
            return f"{self.to_rate:,g}/s{lasts}"
        return f"{self.from_rate:,g} to {self.to_rate:,g}/s{lasts}"

    @property
    def _above(self) -> float:
        return self.from_rate - self.to_rate

    @property
    def _decay_s(self) -> float:
        return self.seconds / OPENING_DECAYS


@dataclass(frozen=True, slots=True)
class Burst:
    """``trades`` more within a short time, again and again.

    The first burst begins ``every_s`` after the start, the last ends by the profile's.
    """

    trades: float
    within_s: float
    every_s: float

    def rate(self, at_s: float, ends_s: float) -> float:
        """Return the trades a second that it adds at a time since the start."""
        begun, into_s = divmod(at_s, self.every_s)
        is_on = 1 <= begun <= self.count(ends_s) and into_s < self.within_s
        return self.trades / self.within_s if is_on else 0.0

    def sum(self, until_s: float, ends_s: float) -> float:
        """Return how many trades it adds from the start to a time."""
        begun, into_s = divmod(until_s, self.every_s)
        if not 1 <= begun <= self.count(ends_s):
            return self.trades * max(0.0, min(begun, self.count(ends_s)))
        return self.trades * (begun - 1 + min(1.0, into_s / self.within_s))

    @property
    def words(self) -> str:
        """The burst for people."""
        within = f"{self.trades:,g} within {self.within_s * 1_000:,g} ms"
        return f"{within} every {self.every_s:g} s"

    def count(self, ends_s: float) -> float:
        """Return how many bursts fit before the end."""
        if ends_s == inf:
            return inf
        # A sum of fractions may end just short of the time it stands for.
        return max(0, floor((ends_s - self.within_s) / self.every_s + 1e-9))


@dataclass(frozen=True, slots=True)
class Profile:
    """The rate of a feed over time; times count in seconds from its start.

    Raises InvalidProfile without a stretch, if one before the last is endless or if
    nothing is due for ever.
    """

    stretches: tuple[Stretch, ...]
    bursts: tuple[Burst, ...] = ()

    def __post_init__(self) -> None:
        if not self.stretches:
            raise InvalidProfile(f"profile without a rate: {RULE}")
        for stretch in self.stretches[:-1]:
            if stretch.seconds == inf:
                raise InvalidProfile(f"{stretch.from_rate:g}: {_ENDLESS}")
        if self.seconds == inf and not self.stretches[-1].to_rate:
            raise InvalidProfile("0: a rate without a time must be above 0")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read parts that are separated by commas, as ``RULE`` says.

        The last part may be a rate alone: it stays for ever. Raises InvalidProfile.
        """
        stretches: list[Stretch] = []
        bursts: list[Burst] = []
        for part in (part.strip() for part in text.split(",")):
            parsed = _parse(part)
            if isinstance(parsed, Burst):
                bursts.append(parsed)
            elif stretches and stretches[-1].seconds == inf:
                raise InvalidProfile(
                    f"{stretches[-1].from_rate:g} before {part!r}: {_ENDLESS}"
                )
            else:
                stretches.append(parsed)
        profile = cls(tuple(stretches), tuple(bursts))
        if MAX_SECONDS < profile.seconds < inf:
            rule = f"must be at most {MAX_SECONDS:,.0f} s"
            raise InvalidProfile(f"{text!r}: lasts {profile.seconds:,.0f} s, {rule}")
        return profile

    @classmethod
    def steady(cls, rate: float) -> Self:
        """Return the profile of one rate, for ever."""
        return cls((Stretch(rate, rate, inf),))

    @property
    def words(self) -> str:
        """The profile for people: ``900/s for 60 s, then 900 to 5,000/s for 60 s``."""
        stretches = ", then ".join(stretch.words for stretch in self.stretches)
        return " + ".join([stretches, *(burst.words for burst in self.bursts)])

    @property
    def seconds(self) -> float:
        """How long it lasts; infinite if its last rate stays for ever."""
        return sum(stretch.seconds for stretch in self.stretches)

    @property
    def total(self) -> float:
        """How many trades fall due until its end; infinite if it has none."""
        return self.trades(self.seconds)

    @property
    def peak(self) -> float:
        """The highest rate at any moment, if all bursts came at once."""
        rates = (max(part.from_rate, part.to_rate) for part in self.stretches)
        return max(rates) + sum(burst.trades / burst.within_s for burst in self.bursts)

    def rate(self, at_s: float) -> float:
        """Return the trades a second at a time; 0 before the start and at the end."""
        ends_s = self.seconds
        if not 0 <= at_s < ends_s:
            return 0.0
        rate = sum(burst.rate(at_s, ends_s) for burst in self.bursts)
        for begins_s, stretch in self._begun():
            if at_s < begins_s + stretch.seconds:
                return rate + stretch.rate(at_s - begins_s)
        return rate

    def trades(self, until_s: float) -> float:
        """Return how many trades fall due from the start to a time."""
        ends_s = self.seconds
        until_s = min(max(until_s, 0.0), ends_s)
        if until_s == inf:
            return inf
        total = sum(burst.sum(until_s, ends_s) for burst in self.bursts)
        for begins_s, stretch in self._begun():
            if until_s <= begins_s:
                break
            total += stretch.trades(min(until_s - begins_s, stretch.seconds))
        return total

    def slots(self, ends_us: float = inf) -> Iterator[tuple[int, int, int]]:
        """Yield begin and length of each slot, in microseconds, and its trades.

        Up to the profile's end, or to ``ends_us`` if that is earlier.
        """
        ends_us = min(ends_us, self.seconds * 1e6)
        given = 0
        for from_us in count(0, SLOT_US):
            if from_us >= ends_us:
                return
            until_us = min(from_us + SLOT_US, ends_us)
            # A sum of fractions may end just short of the trade it stands for.
            due = int(self.trades(until_us / 1e6) + 1e-6)
            yield from_us, round(until_us - from_us), due - given
            given = due

    def dues_us(self) -> Iterator[int]:
        """Yield when each trade is due, evenly spaced within its slot."""
        for from_us, length_us, trades in self.slots():
            for number in range(trades):
                yield from_us + number * length_us // trades

    def _begun(self) -> Iterator[tuple[float, Stretch]]:
        lengths = (stretch.seconds for stretch in self.stretches)
        return zip(accumulate(lengths, initial=0.0), self.stretches, strict=False)


def _parse(part: str) -> Stretch | Burst:
    if form := _STEP.fullmatch(part):
        rate = _rate(part, form[1])
        return Stretch(rate, rate, _time(part, *form.groups()[1:]))
    if form := _RAMP.fullmatch(part):
        from_rate, to_rate = _rate(part, form[1]), _rate(part, form[2])
        return Stretch(from_rate, to_rate, _time(part, form[3], form[4]))
    if form := _OPENING.fullmatch(part):
        rate = _rate(part, form[1])
        seconds = _time(part, form[2], form[3])
        return Stretch(OPENING_PEAK * rate, rate, seconds, "opening")
    if form := _BURST.fullmatch(part):
        return _burst(part, *form.groups())
    raise InvalidProfile(f"part {part!r}: {RULE}")


def _burst(part: str, count: str, within: str, unit: str, *every: str) -> Burst:
    burst = Burst(float(count), _time(part, within, unit), _time(part, *every))
    if burst.within_s > burst.every_s:
        rule = "a burst must be over before the next one begins"
        raise InvalidProfile(f"part {part!r}: {rule}")
    _rate(part, str(burst.trades / burst.within_s))
    return burst


def _rate(part: str, text: str) -> float:
    rate = float(text)
    if not (isfinite(rate) and rate <= MAX_RATE):
        rule = f"must be at most {MAX_RATE:,.0f}"
        raise InvalidProfile(f"part {part!r}: {rate:,.0f} trades a second, {rule}")
    return rate


def _time(part: str, number: str | None, unit: str | None) -> float:
    if number is None or unit is None:
        return inf
    seconds = float(number) * _SECONDS[unit]
    if not 0.001 <= seconds <= MAX_SECONDS:
        rule = f"the time {number}{unit} must be from 1 ms to a week"
        raise InvalidProfile(f"part {part!r}: {rule}")
    return seconds


ProfileOption = Annotated[InstanceOf[Profile], read_by(Profile.parse)]
"""A profile, or the text of one."""
