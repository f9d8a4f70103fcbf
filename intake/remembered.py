"""Which requests were answered already: Idempotency-Keys, kept in Redis for a while.

A request that is sent again with its key gets the first one's answer, and its trades
are not appended again. Every intake of a pipeline knows the keys of all. A key belongs
to whoever holds the token it was sent with: the same key of somebody else is another.
"""

from contextlib import suppress
from enum import Enum
from hashlib import sha256

import orjson
import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from ingest.redis_keys import OtherKeys

REMEMBER_S = 600
"""How long a key is remembered, with its answer, seconds."""

PENDING_FOR_S = 60
"""How long a request without an answer keeps its key: then its intake has died."""

log = structlog.get_logger()


class Clash(Enum):
    """Why a key cannot be used."""

    PENDING = "pending"
    """The request with this key is not answered yet."""
    OTHER_BODY = "other body"
    """There was another body with this key."""


class KeyedRequest:
    """A request under its Idempotency-Key; of one without a key nothing is kept.

    ``holder`` is who sent it (``TokenGrant.holder``).
    """

    def __init__(
        self, client: Redis, namespace: str, holder: str, key: str | None, body: bytes
    ) -> None:
        self._client = client
        self._name: str | None = None
        if key is not None:
            # A digest each: no holder and key read like another holder and key.
            parts = (sha256(part.encode()).digest() for part in (holder, key))
            digest = sha256(b"".join(parts)).hexdigest()[:32]
            self._name = OtherKeys(namespace).intake(digest)
            self._digest = sha256(body).hexdigest()

    async def begin(self) -> bytes | Clash | None:
        """Take the key: None if nobody had it, or the answer that was given with it.

        Raises redis.RedisError while Redis is away; no other method does.
        """
        if self._name is None:
            return None
        pending = orjson.dumps({"body": self._digest})
        # Twice: the first answer may have been forgotten between asking and reading.
        for _ in range(2):
            if await self._client.set(self._name, pending, nx=True, ex=PENDING_FOR_S):
                return None
            stored = await self._client.get(self._name)
            if stored is not None:
                values = orjson.loads(stored)
                if values["body"] != self._digest:
                    return Clash.OTHER_BODY
                if "status" in values:
                    return str(values["answer"]).encode()
                return Clash.PENDING
        return Clash.PENDING

    async def keep(self, answer: bytes) -> None:
        """Keep the answer, which is one with the status 200."""
        if self._name is None:
            return
        stored = {"body": self._digest, "status": 200, "answer": answer.decode()}
        try:
            await self._client.set(self._name, orjson.dumps(stored), ex=REMEMBER_S)
        except RedisError as error:
            # The trades are in the log: that is what has to be told.
            log.warning("an Idempotency-Key was not kept", error=str(error))

    async def extend(self) -> None:
        """Keep the key: the request is still waiting for the log."""
        if self._name is not None:
            with suppress(RedisError):
                await self._client.expire(self._name, PENDING_FOR_S)

    async def forget(self) -> None:
        """Give the key back: nothing was appended."""
        if self._name is not None:
            with suppress(RedisError):
                await self._client.delete(self._name)
