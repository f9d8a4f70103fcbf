"""A feed made worse: trades that come late, twice, or broken. Pure."""

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Annotated

import orjson
from pydantic import Field

from ingest.files.file_form import FrozenOptions
from ingest.sources.event import Event
from ingest.trade import LATEST_TIME_US, MAX_PAYLOAD_BYTES, REQUIRED

MAX_DELAY_US = 500_000
"""How long after its due time a late event comes at most."""

REPEAT_AFTER_US = 250_000

Share = Annotated[float, Field(ge=0, le=1)]

_YEAR_2099_US = 4_070_908_800_000_000


class Faults(FrozenOptions):
    """What is done to a feed's events, share by share; the same seed does the same.

    Every event that comes in goes out, too: repeats and broken copies come on top.
    """

    disorder: Share = 0.0
    """Share of trades, 0 to 1, that come 1 to 500 ms late; their stamps stay."""

    repeats: Share = 0.0
    """Share of trades, 0 to 1, that come again byte for byte a quarter second later,
    as a feed does after a reconnect.
    """

    malformed: Share = 0.0
    """Share of trades, 0 to 1, after which comes a copy that breaks a rule."""

    seed: int = 1

    @property
    def factor(self) -> float:
        """How many events go out for each that comes in."""
        return 1 + self.repeats + self.malformed

    def inject(self, events: Iterable[Event]) -> Iterator[Event]:
        """Yield the events and their faults by due time, each when asked.

        Raises what the events raise, after all that came before.
        """
        rng = Random(f"{self.seed}/spoil")
        # By due time, those of the same time in the order in which they were put in.
        held: list[tuple[int, int, Event]] = []
        numbers = count()

        def hold(event: Event, delay_us: int) -> None:
            due_us = event.due_us + delay_us
            heappush(held, (due_us, next(numbers), event._replace(due_us=due_us)))

        fault: Exception | None = None
        try:
            for event in events:
                while held and held[0][0] <= event.due_us:
                    yield heappop(held)[2]
                if rng.random() < self.repeats:
                    hold(event, REPEAT_AFTER_US)
                is_broken = rng.random() < self.malformed
                if rng.random() < self.disorder:
                    hold(event, rng.randint(1_000, MAX_DELAY_US))
                else:
                    yield event
                if is_broken:
                    yield event._replace(payload=break_trade(rng, event.payload))
        except Exception as error:  # noqa: BLE001 - it is raised behind what is held
            fault = error
        while held:
            yield heappop(held)[2]
        if fault is not None:
            raise fault


def break_trade(rng: Random, payload: bytes) -> bytes:
    """Return a broken copy of an encoded trade; every kind is as likely as another.

    Each is refused by ``Trade.from_wire``, but for a stamp in the year 2099, which
    only ``check_not_ahead`` refuses.
    """
    return rng.choice(_KINDS)(rng, payload)


def _not_utf8(rng: Random, payload: bytes) -> bytes:
    broken = payload.replace(b"KR7", b"\xc7\xd1\xff", 1)
    return b"\xff" + payload if broken == payload else broken


def _missing_field(rng: Random, payload: bytes) -> bytes:
    fields = orjson.loads(payload)
    del fields[rng.choice(REQUIRED)]
    return orjson.dumps(fields)


def _wrong_check_digit(rng: Random, payload: bytes) -> bytes:
    isin = orjson.loads(payload)["isin"]
    return _with("isin", f"{isin[:-1]}{(int(isin[-1]) + 1) % 10}")(rng, payload)


def _with(name: str, value: object) -> Callable[[Random, bytes], bytes]:
    def replace(rng: Random, payload: bytes) -> bytes:
        return orjson.dumps(orjson.loads(payload) | {name: value})

    return replace


_KINDS: tuple[Callable[[Random, bytes], bytes], ...] = (
    lambda rng, payload: b"",
    lambda rng, payload: payload[: rng.randrange(1, len(payload))],
    _not_utf8,
    lambda rng, payload: b"[" + payload + b"]",
    lambda rng, payload: payload[:-1] + b',"pad":"' + b"x" * MAX_PAYLOAD_BYTES + b'"}',
    _missing_field,
    _wrong_check_digit,
    _with("isin", "005930"),
    _with("time", 1_773_964_804),
    _with("time", LATEST_TIME_US),
    _with("time", _YEAR_2099_US),
    _with("seq", -1),
    _with("seq", 1.5),
    _with("price", "-100"),
    _with("price", "0"),
    _with("price", "n/a"),
    _with("price", "1e5"),
    _with("size", "0"),
    _with("size", True),
    _with("trades", 3),
    _with("depth", {"ask": 1}),
)
