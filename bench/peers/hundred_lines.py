"""Redis and a hundred lines: what a good programmer writes in an afternoon.

Follows the stream `trades` (field `t`: a trade as JSON with isin, time, seq, price),
keeps the newest trade of each instrument, and every two seconds sends those that
changed to all WebSockets and stores them in the hash `latest`. Arguments: the server, a
port.
`bench/hundred_lines.py` shows where it breaks.
"""

import asyncio
import json
import sys
import time
from typing import Any

from redis.asyncio import Redis
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

WINDOW_S = 2.0

Trade = dict[str, Any]


class HundredLines:
    """The newest trade of each instrument, every two seconds, to whoever listens."""

    def __init__(self, server: Redis) -> None:
        self._server = server
        self._changed: dict[str, Trade] = {}
        self._clients: set[ServerConnection] = set()

    async def read(self) -> None:
        position = "$"
        while True:
            answer = await self._server.xread({"trades": position}, 10_000, 100)
            for _, entries in answer:
                for entry, fields in entries:
                    trade = json.loads(fields[b"t"])
                    self._changed[trade["isin"]] = trade
                    position = entry

    async def publish(self) -> None:
        """Send what has changed, at every even second."""
        while True:
            await asyncio.sleep(WINDOW_S - time.time() % WINDOW_S)
            window, self._changed = self._changed, {}
            if not window:
                continue
            rows = [(isin, json.dumps(trade)) for isin, trade in window.items()]
            await self._server.hset(
                "latest", items=[text for row in rows for text in row]
            )
            message = json.dumps({"window": time.time(), "data": list(window.values())})
            for client in list(self._clients):
                try:
                    await client.send(message)
                except ConnectionClosed:
                    self._clients.discard(client)

    async def welcome(self, client: ServerConnection) -> None:
        """Give a new client what is known, then every window, until it goes."""
        known = await self._server.hvals("latest")
        data = [json.loads(row) for row in known]
        await client.send(json.dumps({"window": time.time(), "data": data}))
        self._clients.add(client)
        try:
            await client.wait_closed()
        finally:
            self._clients.discard(client)


async def main(url: str, port: int) -> None:
    async with Redis.from_url(url) as server:
        lines = HundredLines(server)
        async with serve(lines.welcome, "127.0.0.1", port):
            print("ready", flush=True)
            await asyncio.gather(lines.read(), lines.publish())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
