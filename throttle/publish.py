"""One atomic publish of a batch's windows, and its refused trades to dead letters."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from secrets import token_hex
from typing import Any

import orjson
import pyarrow as pa
import redis

from ingest.redis_log import entry_id
from ingest.trade import Trade
from throttle.cut import Cut, window_ends
from throttle.rows import CUT_KEY, decode_cuts
from throttle.snapshot import Keys, Row, encode_version

_COLUMNS = (
    "latest.time",
    "latest.seq",
    "latest.position",
    "latest.partition",
    "latest.reason",
    "latest.error",
    "trades",
)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A refused trade: where it stood in the log, why, and its original bytes."""

    partition: int
    position: int
    reason: str
    error: str
    payload: bytes


@dataclass(slots=True)
class Window:
    """What one window publishes and accounts for."""

    end_ms: int
    rows: list[Row] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)

    @property
    def read(self) -> int:
        """Trades of this window that were read from the log."""
        return sum(row.trades for row in self.rows) + self.refused.total()


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch ready to publish: every window between two cuts, empty ones too."""

    end: Cut
    windows: Sequence[Window]
    dead_letters: Sequence[DeadLetter]


@dataclass(frozen=True, slots=True)
class Published:
    """What a publish did; all zero but the position when it was a repeat."""

    epoch: str
    offset: int
    windows: int
    rows: int
    stale: int


def assemble(table: pa.Table, window_ms: int) -> Batch:
    """Turn a conflated batch (``conflate.py``) into its windows, oldest first.

    Raises ValueError if the batch does not hold exactly one cut row.
    """
    table = table.flatten()
    keys = table.column("key").to_pylist()
    if keys.count(CUT_KEY) != 1:
        raise ValueError(f"a batch has one cut row, this one {keys.count(CUT_KEY)}")
    payloads = table.column("latest.payload").to_pylist()
    ends = [us // 1000 for us in table.column("window.end").cast("int64").to_pylist()]
    start, end = decode_cuts(payloads[keys.index(CUT_KEY)])
    windows = {e: Window(e) for e in window_ends(start.end_ms, end.end_ms, window_ms)}
    letters = []
    # Column by column: turning rows into dictionaries takes ten times as long.
    columns = (table.column(name).to_pylist() for name in _COLUMNS)
    for row in zip(keys, payloads, ends, *columns, strict=True):
        key, payload, end_ms, time_us, seq, position, partition, reason, error, n = row
        if reason is not None:
            windows[end_ms].refused[reason] += 1
            letters.append(DeadLetter(partition, position, reason, error, payload))
        elif key != CUT_KEY:
            version = encode_version(time_us, seq, position)
            body = Trade.from_wire(payload).to_row()
            windows[end_ms].rows.append(Row(key, version, n, body))
    letters.sort(key=lambda letter: (letter.partition, letter.position))
    return Batch(end, list(windows.values()), letters)


class Publisher:
    """Writes batches to Redis; publishing one twice changes nothing."""

    def __init__(
        self,
        client: redis.Redis,
        keys: Keys,
        job: str,
        window_ms: int,
        window_log: int,
        dead_letters: int,
    ) -> None:
        self._client = client
        self._keys = keys
        self._job = job
        self._window_ms = window_ms
        self._window_log = window_log
        self._dead_letters = dead_letters
        script = files("throttle").joinpath("publish.lua").read_text("utf-8")
        self._publish = client.register_script(script)

    def publish(self, batch: Batch) -> Published:
        """Store the dead letters, then the windows in one atomic step.

        Raises redis.RedisError; the batch may then be published again.
        """
        self._bury(batch.dead_letters)
        keys = self._keys
        arguments: list[Any] = [
            keys.updates,
            self._job,
            orjson.dumps(batch.end.to_offset()),
            self._window_ms,
            self._window_log,
            token_hex(4),
            len(batch.windows),
        ]
        for window in batch.windows:
            arguments += [window.end_ms, window.read, len(window.refused)]
            arguments.append(len(window.rows))
            for reason, count in window.refused.items():
                arguments += [reason, count]
            arguments += [row.encode() for row in window.rows]
        reply = self._publish(
            keys=[keys.meta, keys.last, keys.windows, keys.totals], args=arguments
        )
        epoch, offset, windows, rows, stale = reply
        return Published(epoch.decode(), offset, windows, rows, stale)

    def _bury(self, letters: Iterable[DeadLetter]) -> None:
        # The id is the entry's own in the log: a repeat is refused by the server.
        with self._client.pipeline(transaction=False) as pipe:
            for letter in letters:
                pipe.xadd(
                    f"{self._keys.dead}:{letter.partition}",
                    {
                        "reason": letter.reason,
                        "error": letter.error,
                        "trade": letter.payload,
                    },
                    id=entry_id(letter.position),
                    maxlen=self._dead_letters,
                    approximate=True,
                )
            for reply in pipe.execute(raise_on_error=False):
                if isinstance(reply, Exception) and "equal or smaller" not in str(
                    reply
                ):
                    raise reply
