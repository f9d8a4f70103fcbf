"""In which state a client is, and which of two is slower. Pure."""

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from pydantic import Field

from gateway.stream.client import Client, Kind
from tickthrottle_client.tick_v1 import ALL

State = Literal["new", "live", "behind", "stuck"]
"""``new`` has asked for nothing yet, ``live`` has been sent everything, ``behind`` has
something waiting, ``stuck`` has taken not one byte of it for a second or longer.
"""

STATES: tuple[State, ...] = get_args(State)

STUCK_AFTER_S = 1.0

Slowness = tuple[int, int, int]


def state_of(client: Client, now_s: float) -> State:
    """Return a client's state."""
    sender, delivery = client.sender, client.delivery
    if sender.stuck_s(now_s) >= STUCK_AFTER_S:
        return "stuck"
    if sender.unsent_bytes or delivery.is_owed:
        return "behind"
    return "live" if client.commands.has_asked else "new"


def slowness(state: State, unsent_bytes: int, pending: int) -> Slowness:
    """Return what orders clients: greater is slower."""
    if state in ("new", "live"):
        return (0, 0, pending)
    return (2 if state == "stuck" else 1, unsent_bytes, pending)


@dataclass(frozen=True, slots=True)
class ClientRow:
    """One client, for operators."""

    id: Annotated[str, Field(examples=["c-7f3a9102"])]
    state: Annotated[State, Field(examples=["behind"])]
    address: Annotated[str, Field(examples=["203.0.113.7"])]
    kind: Kind
    keys: Annotated[int, Field(examples=[30])]
    everything: Annotated[bool, Field(examples=[False])]
    pending: Annotated[int, Field(examples=[12])]
    unsent_bytes: Annotated[int, Field(examples=[65536])]
    connected_ms: Annotated[int, Field(examples=[1773964201004])]
    sent_ms: Annotated[int, Field(examples=[1773964804190])]


def row_of(client: Client, now_s: float, now_ms: int) -> ClientRow:
    """Describe a client; ``now_ms`` is the time of day at ``now_s``."""

    def time_of_day(at_s: float) -> int:
        return now_ms - round((now_s - at_s) * 1_000)

    delivery, sender = client.delivery, client.sender
    return ClientRow(
        client.id,
        state_of(client, now_s),
        client.commands.address,
        client.kind,
        len(delivery.keys),
        ALL in delivery.keys,
        delivery.pending,
        sender.unsent_bytes,
        time_of_day(client.connected_s),
        time_of_day(client.sent_s),
    )
