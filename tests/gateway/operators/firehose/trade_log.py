"""A trade log in Redis to look at, and a viewer that looks."""

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis

from ingest.tradelog.contract import partition_of
from ingest.tradelog.redis_log_reader import open_log
from tests.gateway.samples import SAMSUNG
from tests.gateway.servers import Gateway
from tickthrottle_client.log_v1 import FIELD, stream_key

PARTITIONS = 2


def make_payload(seq: int, isin: str = SAMSUNG) -> bytes:
    """Make a trade as the log has it."""
    trade = {"isin": isin, "time": 1_773_964_800_000_000 + seq, "seq": seq}
    return json.dumps({**trade, "price": "71500", "size": "12"}).encode()


class TradeLog:
    """Appends what it is given at once, so that a look sees all of it or nothing."""

    def __init__(self, client: redis.Redis) -> None:
        open_log(client, "tt", PARTITIONS)
        self._client = client
        self._seq = 0

    def append(self, count: int, isin: str = SAMSUNG) -> None:
        """Append so many trades of an instrument."""
        first, self._seq = self._seq + 1, self._seq + count
        seqs = range(first, self._seq + 1)
        self.append_payloads(*(make_payload(seq, isin) for seq in seqs), isin=isin)

    def append_payloads(self, *payloads: bytes, isin: str = SAMSUNG) -> None:
        """Append entries of any bytes."""
        key = stream_key("tt", partition_of(isin, PARTITIONS))
        with self._client.pipeline(transaction=True) as pipe:
            for payload in payloads:
                pipe.xadd(key, {FIELD: payload})
            pipe.execute()


class Looking:
    """A viewer of the firehose, and what it was told."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self._answer = answer
        self.rows: list[Any] = []
        self.appended = self.shown = self.left_out = self.unread = self.bytes = 0
        self.most_shown = 0

    def next(self) -> dict[str, Any] | None:
        """Return the next message, None at the end."""
        line = self._answer.readline()
        if not line:
            return None
        assert self._answer.readline() == b"\n"
        message: dict[str, Any] = json.loads(line.removeprefix(b"data: "))
        return message

    def take(self) -> None:
        """Take in one message of trades, which has to balance."""
        message = self.next()
        assert message is not None
        assert message["type"] == "trades", message
        assert message["appended"] == message["shown"] + message["left_out"]
        assert message["shown"] == len(message["data"])
        self.most_shown = max(self.most_shown, message["shown"])
        for name in ("appended", "shown", "left_out", "unread", "bytes"):
            setattr(self, name, getattr(self, name) + message[name])
        self.rows += message["data"]

    def take_until(self, appended: int) -> None:
        """Take messages in until so many trades are accounted for."""
        while self.appended < appended:
            self.take()


@contextmanager
def looking(gateway: Gateway, query: str = "", **headers: str) -> Iterator[Looking]:
    """Open the firehose at a port; the first message and the first look have come."""
    connection = http.client.HTTPConnection(gateway.host, gateway.port, timeout=20)
    try:
        connection.request("GET", f"/v1/firehose{query}", headers=headers)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        assert answer.headers["content-type"] == "text/event-stream"
        viewer = Looking(answer)
        yield viewer
        answer.close()
    finally:
        connection.close()
