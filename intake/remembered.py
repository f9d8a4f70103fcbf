"""Which requests were answered already: Idempotency-Keys, kept in Redis for a while.

A request that is sent again with its key gets the first one's answer, and its trades
are not appended again. Every intake of a pipeline knows the keys of all. A key belongs
to whoever holds the token it was sent with: the same key of somebody else is another.
"""

from dataclasses import dataclass
from enum import Enum
from hashlib import sha256

import orjson
from redis.asyncio import Redis

from ingest.redis_keys import OtherKeys

REMEMBER_S = 600
"""How long a key is remembered, with its answer, seconds."""

PENDING_FOR_S = 60
"""How long a request without an answer keeps its key: then its intake has died."""


class Clash(Enum):
    """Why a key cannot be used."""

    PENDING = "pending"
    """The request with this key is not answered yet."""
    OTHER_BODY = "other body"
    """There was another body with this key."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """An answer that was given."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class RequestKey:
    """An Idempotency-Key, and who sent it (``TokenGrant.holder``)."""

    holder: str
    text: str

    @property
    def digest(self) -> str:
        """A text of 32 characters that no other key of any holder has."""
        # A digest each: no holder and key read like another holder and key.
        parts = (sha256(part.encode()).digest() for part in (self.holder, self.text))
        return sha256(b"".join(parts)).hexdigest()[:32]


class Memory:
    """Keys and answers. All methods raise redis.RedisError while Redis is away."""

    def __init__(self, client: Redis, namespace: str) -> None:
        self._client = client
        self._keys = OtherKeys(namespace)

    async def begin(self, key: RequestKey, body: bytes) -> Remembered | Clash | None:
        """Take a key for a body: None if nobody had it, or what became of it."""
        name, digest = self._name(key), _digest(body)
        pending = orjson.dumps({"body": digest})
        # Twice: the first answer may have been forgotten between asking and reading.
        for _ in range(2):
            if await self._client.set(name, pending, nx=True, ex=PENDING_FOR_S):
                return None
            stored = await self._client.get(name)
            if stored is not None:
                return _decode(stored, digest)
        return Clash.PENDING

    async def keep(
        self, key: RequestKey, body: bytes, status: int, answer: bytes
    ) -> None:
        """Keep an answer."""
        stored = {"body": _digest(body), "status": status, "answer": answer.decode()}
        await self._client.set(self._name(key), orjson.dumps(stored), ex=REMEMBER_S)

    async def extend(self, key: RequestKey) -> None:
        """Keep a key whose request is still waiting for the log."""
        await self._client.expire(self._name(key), PENDING_FOR_S)

    async def forget(self, key: RequestKey) -> None:
        """Give a key back: nothing was appended."""
        await self._client.delete(self._name(key))

    def _name(self, key: RequestKey) -> str:
        return self._keys.intake(key.digest)


def _digest(body: bytes) -> str:
    return sha256(body).hexdigest()


def _decode(stored: bytes | str, digest: str) -> Remembered | Clash:
    values = orjson.loads(stored)
    if values["body"] != digest:
        return Clash.OTHER_BODY
    if "status" not in values:
        return Clash.PENDING
    return Remembered(values["status"], values["answer"].encode())
