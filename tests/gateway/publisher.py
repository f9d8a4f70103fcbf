"""Publishes as the throttle does: all keys and the message in one transaction.

A row that is not newer than what is stored is published as one that restates that.
"""

from collections.abc import Iterable, Sequence

import redis

from gateway.protocol.market_instruments import MarketInstruments
from ingest.instrument_table.instrument_list import parse_list
from ingest.instrument_table.redis_instrument_store import RedisInstrumentStore
from ingest.instrument_table.table_loader import load_list
from ingest.redis_keys import FORM, Keys
from tests.gateway.samples import (
    EPOCH,
    INSTRUMENT_LIST,
    LISTED,
    WINDOW_MS,
    make_snapshot,
    restate,
)
from throttle.contract.group import Group
from throttle.contract.snapshot import LastValue, Row, WindowSnapshot
from throttle.contract.trade_order import is_newer


def load_instruments(client: redis.Redis, text: str, namespace: str = "tt") -> None:
    """Have the instrument table be a list, whatever it was before."""
    store = RedisInstrumentStore(client, namespace)
    wanted = parse_list(text.splitlines(keepends=True))
    load_list(store, wanted, is_forced=True)


class Publisher:
    """One unbroken numbering of windows, beginning at offset 1."""

    def __init__(
        self, client: redis.Redis, epoch: str = EPOCH, window_ms: int = WINDOW_MS
    ) -> None:
        self.keys = Keys("tt")
        self.epoch = epoch
        self.offset = 0
        self.window: int | None = None
        self.markets: Sequence[str] = ()
        """Markets of the sample table whose own channels are published to as well."""
        self._client = client
        self._window_ms = window_ms

    def publish(self, *rows: Row, groups: Iterable[Group] = ()) -> WindowSnapshot:
        """Publish one window."""
        return self._publish([rows], is_lost=False, groups=groups)

    def publish_at(self, end_ms: int, *rows: Row) -> WindowSnapshot:
        """Publish the window that ends then."""
        return self._publish([rows], is_lost=False, window=end_ms)

    def publish_part(
        self, *rows: Row, windows_behind: int = 0, groups: Iterable[Group] = ()
    ) -> WindowSnapshot:
        """Publish the newest window once more, or an older one, as another job does."""
        window = (self.window or 0) - windows_behind * WINDOW_MS
        return self._publish([rows], is_lost=False, window=window, groups=groups)

    def publish_lost(
        self, *rows: Row, window: int | None = None, groups: Iterable[Group] = ()
    ) -> WindowSnapshot:
        """Publish one window whose message reaches nobody."""
        return self._publish([rows], is_lost=True, window=window, groups=groups)

    def forget_windows(self) -> None:
        """Empty the window log."""
        self._client.xtrim(self.keys.windows, maxlen=0)

    def know_jobs(self, *names: str) -> None:
        """Have the stored state say that these jobs publish."""
        for name in names:
            self._client.hset(self.keys.meta, f"cut:{name}", '{"end_ms":0}')

    def publish_outage(self, *windows: Sequence[Row]) -> WindowSnapshot:
        """Publish several windows at once, with one message for all of them."""
        return self._publish(windows, is_lost=False)

    def list_instruments(self, text: str = INSTRUMENT_LIST) -> None:
        """Have the instrument table be a list."""
        load_instruments(self._client, text)

    def repeat(self, snapshot: WindowSnapshot) -> None:
        """Send a message again."""
        self._client.publish(self.keys.updates, snapshot.encode())

    def _publish(
        self,
        windows: Sequence[Sequence[Row]],
        *,
        is_lost: bool,
        window: int | None = None,
        groups: Iterable[Group] = (),
    ) -> WindowSnapshot:
        groups = tuple(groups)
        latest: dict[str, Row] = {}
        last = self._last({row.isin for rows in windows for row in rows})
        with self._client.pipeline(transaction=True) as pipe:
            for rows in windows:
                self.offset += 1
                published = [_as_published(row, last) for row in rows]
                entry = make_snapshot(
                    self.offset,
                    *published,
                    epoch=self.epoch,
                    window=window,
                    groups=groups,
                )
                pipe.xadd(
                    self.keys.windows,
                    {"snapshot": entry.encode()},
                    id=f"{self.offset}-0",
                )
                for row in published:
                    value = b"%b %d %b" % (row.version, self.offset, row.body)
                    pipe.hset(self.keys.last, row.isin, value)
                    before = latest.get(row.isin)
                    latest[row.isin] = row.merge(before) if before else row
                    last[row.isin] = LastValue(
                        row.isin, row.version, self.offset, row.body
                    )
            message = make_snapshot(
                self.offset,
                *latest.values(),
                windows=len(windows),
                epoch=self.epoch,
                window=window,
                groups=groups,
            )
            for group in message.groups:
                stored = b"%d %b" % (self.offset, group.body)
                pipe.hset(self.keys.groups, group.field, stored)
            pipe.hset(
                self.keys.meta,
                mapping={
                    "form": FORM,
                    "epoch": self.epoch,
                    "offset": self.offset,
                    "window": message.window,
                    "window_ms": self._window_ms,
                },
            )
            if not is_lost:
                pipe.publish(self.keys.updates, message.encode())
                for market in self.markets:
                    instruments = MarketInstruments(LISTED, market)
                    part = instruments.part_of(message).encode()
                    pipe.publish(self.keys.market_updates(market), part)
            pipe.execute()
        self.window = max(message.window, self.window or 0)
        return message

    def _last(self, isins: set[str]) -> dict[str, LastValue]:
        """Return what is stored of some instruments."""
        names = sorted(isins)
        values = self._client.hmget(self.keys.last, names) if names else []
        return {
            isin: LastValue.decode(isin.encode(), value)
            for isin, value in zip(names, values, strict=True)
            if value is not None
        }


def _as_published(row: Row, last: dict[str, LastValue]) -> Row:
    shown = last.get(row.isin)
    is_shown = shown is None or is_newer(row.version, shown.version)
    return row if is_shown or shown is None else restate(shown, row)
