"""The log as the oracle of bars takes it, and the bars that Redis has."""

from collections.abc import Iterator
from typing import Any

import redis

from ingest.redis_keys import AnalyticsKeys
from ingest.trade import Trade
from tests.throttle.analytics.analytics_rig import fields_of
from tests.throttle.analytics.bar_oracle import Entry
from throttle.contract.bars import Bar
from tickthrottle_client.log_v1 import FIELD, position_of, stream_key


def log_entries(client: redis.Redis, partitions: int) -> Iterator[Entry]:
    """Yield all that a log in Redis holds, by partition."""
    for partition in range(partitions):
        entries: Any = client.xrange(stream_key("tt", partition))
        for entry_id, fields in entries:
            one = Trade.from_wire(fields[FIELD])
            yield Entry(
                int(entry_id.partition(b"-")[0]),
                partition,
                position_of(entry_id),
                one.isin,
                one.time_us,
                one.seq,
                one.price,
                one.size,
                *(one.extra.get(n) for n in ("updates", "cancels", "corrects")),
            )


def stored_bars(
    client: redis.Redis, keys: AnalyticsKeys
) -> Iterator[tuple[tuple[str, int], dict[str, Any]]]:
    """Yield every bar by instrument and start, as the oracle has it."""
    isins: Any = client.hkeys(keys.last_bars)
    for isin in (name.decode() for name in isins):
        lines: Any = client.zrange(keys.bars(isin), 0, -1)
        for bar in (Bar.decode(isin, line) for line in lines):
            yield (isin, bar.start_ms), fields_of(bar)
