"""One atomic publish of a batch: what changed, its message, its books."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import chain

import orjson
import redis

from ingest.redis_keys import ANALYTICS_JOB, AnalyticsKeys
from throttle.contract.tally import BatchNote
from throttle.lease.lease import Fenced
from throttle.publish.publisher import StreamLost

BATCHES_KEPT = 450

Command = Sequence[str | bytes | int]
"""A command of Redis: its name, the key it writes, and more."""


@dataclass(frozen=True, slots=True)
class BatchChanges:
    """What a batch changes.

    ``commands`` are carried out in order; each may be carried out again. The message is
    an object that begins with its epoch and sequence, then ``rest``; the key
    ``keep_as`` keeps it. ``settings`` go to the progress, ``logged`` to the stream
    ``log_as``, an entry each.
    """

    rest: bytes
    commands: Sequence[Command] = ()
    settings: Mapping[str, str | int] = field(default_factory=dict)
    keep_as: str = ""
    logged: Sequence[bytes] = ()
    log_as: str = ""


def event_changes(
    key: str, most: int, name: str, fields: Mapping[str, int], lines: Sequence[bytes]
) -> BatchChanges:
    """Return events as lines of a message after ``fields``, and entries of a stream."""
    return BatchChanges(
        b"\n".join([b"," + orjson.dumps(fields)[1:], *lines]),
        [("XADD", key, "MAXLEN", "~", most, "*", name, line) for line in lines],
    )


class ProductPublisher:
    """Writes one product under one term; publishing a batch twice changes nothing."""

    def __init__(
        self,
        client: redis.Redis,
        keys: AnalyticsKeys,
        product: str,
        checkpoint: str,
        term: int,
    ) -> None:
        self._client = client
        self._keys = keys
        self._product = product
        self._checkpoint = checkpoint
        self._term = term
        text = files("throttle.analytics").joinpath("publish.lua").read_text("utf-8")
        self._script = client.register_script(text)

    def publish(
        self,
        changes: BatchChanges,
        note: BatchNote,
        batch_id: int,
        clock_ms: int,
        *,
        takes_up: bool = False,
    ) -> bool:
        """Publish a batch; False if it was published before.

        With ``takes_up`` it is what the state holds where ``note`` begins, of which
        Redis may know less; from then on the batch of ``note`` can be published. Raises
        Fenced, StreamLost when the batch does not begin where this checkpoint's last
        one ended, and redis.RedisError, after which it may be published again.
        """
        if takes_up:
            note = BatchNote(note.start, note.start, {})
        keys, product = self._keys, self._product
        head = {
            "channel": keys.updates(product),
            "job": ANALYTICS_JOB,
            "term": self._term,
            "checkpoint": self._checkpoint,
            "batch": batch_id,
            "start": orjson.dumps(note.start.to_offset()).decode(),
            "end": orjson.dumps(note.end.to_offset()).decode(),
            "clock": clock_ms,
            "note": note.encode(),
            "takes_up": takes_up,
            "keep_as": changes.keep_as,
            "kept": BATCHES_KEPT,
            "counts": [
                (f"{p}:{name}", number)
                for p, tally in note.tallies.items()
                for name, number in tally.items().items()
            ],
            # As text: a double, which the script has for numbers, keeps 53 bits.
            "settings": [(name, str(one)) for name, one in changes.settings.items()],
            "log": changes.log_as,
            "logged": f"logged:{product}",
            "entries": len(changes.logged),
            "commands": [len(command) for command in changes.commands],
        }
        status, *values = self._script(
            keys=[
                keys.lease_keys.meta,
                keys.progress(product),
                keys.ledger(product),
                keys.batches(product),
                *filter(None, [changes.keep_as, changes.log_as]),
                *dict.fromkeys(str(command[1]) for command in changes.commands),
            ],
            args=[
                orjson.dumps(head),
                *(changes.rest, *changes.logged),
                *chain.from_iterable(changes.commands),
            ],
        )
        if status == b"fenced":
            raise Fenced(
                "fenced: another analytics job has taken over "
                f"(its term is {values[0]}, this one's {self._term})"
            )
        if status == b"lost":
            raise StreamLost(
                f"{product}: Redis was emptied, rolled back or started again"
            )
        return bool(status == b"ok")
