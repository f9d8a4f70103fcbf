"""Where the published stream is read from: Redis, or a gateway that has read it."""

from typing import Any, Protocol

from redis.asyncio import Redis

from gateway.stream.board import Position
from gateway.stream.hub import Hub
from gateway.upstream.decode import StoredState, decode_state
from gateway.upstream.redis_client import check_server, confirm_subscription
from gateway.upstream.window_log import WindowLog
from ingest.redis_keys import Keys
from throttle.contract.snapshot import WindowSnapshot

POLL_S = 0.25
"""How long one look for a message lasts; a stop is noticed as fast."""


class StreamSource(Protocol):
    """One connection after the other; every method raises OSError or RedisError.

    ``path`` names the gateways that the stream passes before this one. ``place`` is
    where the stream is, also where no message has said so; None if nobody says it.
    """

    @property
    def path(self) -> tuple[str, ...]: ...

    @property
    def place(self) -> Position | None: ...

    async def open(self) -> None:
        """Connect: what is published from now on comes."""

    async def next(self) -> bytes | None:
        """Return the next message, None if none comes within ``POLL_S``."""

    async def state(self) -> StoredState | None:
        """Return the whole state, at least as new as when it was asked for."""

    async def between(self, first: int, last: int) -> list[WindowSnapshot]:
        """Return the windows with offsets from ``first`` to ``last``, if still held."""

    async def until(self, last: int, limit: int) -> list[WindowSnapshot]:
        """Return up to ``limit`` windows with offsets up to ``last``, newest first."""

    def may_be_dead(self, now_s: float) -> bool:
        """Say whether a silence may be that of a connection that is gone unseen."""

    async def close(self) -> None:
        """Let go of the connection, if there is one."""


class RedisSource:
    """The stream as the throttle publishes it."""

    path: tuple[str, ...] = ()
    place: Position | None = None

    def __init__(self, redis: Redis, keys: Keys, hub: Hub) -> None:
        market = hub.settings.served_market
        self._redis, self._keys = redis, keys
        self._channel = keys.updates if market is None else keys.market_updates(market)
        log = WindowLog(redis, keys, lambda: hub.instruments)
        self.between, self.until = log.between, log.until
        self._pubsub: Any = None

    async def open(self) -> None:
        await check_server(self._redis)
        self._pubsub = self._redis.pubsub()
        await self._pubsub.subscribe(self._channel)
        await confirm_subscription(self._pubsub, "the subscription", POLL_S)

    async def next(self) -> bytes | None:
        message = await self._pubsub.get_message(
            ignore_subscribe_messages=True, timeout=POLL_S
        )
        return None if message is None else message["data"]

    async def state(self) -> StoredState | None:
        pipe, keys = self._redis.pipeline(transaction=True), self._keys
        for key in (keys.meta, keys.last, keys.groups, keys.days_so_far):
            pipe.hgetall(key)
        return decode_state(*await pipe.execute())

    def may_be_dead(self, now_s: float) -> bool:
        return True

    async def close(self) -> None:
        if self._pubsub is not None:
            await self._pubsub.aclose()
            self._pubsub = None
