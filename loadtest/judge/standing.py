"""Where a published stream stands at one moment: the ground a run is judged from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
import redis

from ingest.redis_keys import Keys
from throttle.contract.cut import Cut
from throttle.contract.ledger import Ledger
from throttle.contract.snapshot import LastValue


class NoStream(RuntimeError):
    """There is no stream to follow; the message says why."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A job's stream between two publishes.

    ``last`` is what was published last of each instrument; ``others`` are further jobs
    that publish into the same stream. What follows this moment has offsets above
    ``offset`` and lies behind ``cut`` in the log.
    """

    epoch: str
    offset: int
    cut: Cut
    ledger: Ledger
    others: tuple[str, ...] = ()
    last: Mapping[str, LastValue] = field(default_factory=dict, repr=False)


def read_standing(client: redis.Redis, namespace: str, job: str) -> Standing:
    """Read it in one step. Raises NoStream if the job has never published."""
    keys = Keys(namespace)
    with client.pipeline(transaction=True) as pipe:
        pipe.hgetall(keys.meta)
        pipe.hgetall(keys.ledger(job))
        pipe.hgetall(keys.last)
        found: list[Any] = pipe.execute()
    meta = {name.decode(): value for name, value in found[0].items()}
    ledger = Ledger.decode(job, found[1])
    if ledger is None or f"cut:{job}" not in meta:
        raise NoStream(f"job {job}: has published nothing under {keys.meta}")
    cuts = (name.removeprefix("cut:") for name in meta if name.startswith("cut:"))
    return Standing(
        meta["epoch"].decode(),
        int(meta["offset"]),
        Cut.from_offset(orjson.loads(meta[f"cut:{job}"])),
        ledger,
        tuple(sorted(name for name in cuts if name != job)),
        {name.decode(): LastValue.decode(name, v) for name, v in found[2].items()},
    )
