"""A stranger who wishes a gateway ill, on loopback: what he sends, what he gets.

Requests that never end, silent connections, tokens and origins that cannot be read,
and rubbish, all at once and bounded. Meant to run beside `tickthrottle load`.
"""

import argparse
import asyncio
import json
import os
import time
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count, cycle
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

from gateway.settings import is_local_host
from ingest.process.descriptors import raise_descriptor_limit

ENDLESS = 8
"""Connections that send a request without an end, at any time."""

ENDLESS_BYTES = 4_194_304
"""Each of them gives up after this."""

TALKERS = 4
"""Connections that send rubbish, at any time."""

SILENT = 2_000
"""Connections that are held open without a word, fewer if the system allows fewer."""

REOPEN_S = 10.0
"""A silent connection that was cut is opened again within this."""

PATIENCE_S = 5.0
"""An answer that takes longer counts as none."""

AWAIT_ANSWER = b""
"""Among the pieces to be sent: go on when something was received."""

PAUSE_S = 0.02
"""Rest after each request of those that are meant to be read."""

UPGRADE = (
    "GET /v1/stream{query} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\n"
    "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n"
)

ODD_HEADS = (
    "[" * 40_000,
    "[" * 4_000,
    '{"alg":' + "9" * 5_000 + "}",
    '{"alg":"HS256","b64":false}',
    '{"alg":"HS256","crit":["' + "x" * 3_000 + '"]}',
    '{"alg":["HS256"]}',
    '{"alg":"\\ud800"}',
    "null",
)
"""Headers of tokens that nobody issues."""

ODD_ORIGINS = ("http://[", "http://[::1", "null", "\xff", "https://" + "a" * 4_000)


@dataclass(slots=True)
class Tally:
    """What one kind of attack has sent, and what it got, by how often."""

    connections: int = 0
    sent_bytes: int = 0
    answers: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Target:
    """The gateway, until when (monotonic) and by how many connections it is bothered.

    ``most`` is for each attack.
    """

    host: str
    port: int
    until_s: float
    most: int

    def has_enough(self, tally: Tally) -> bool:
        """Say whether an attack is over."""
        return time.monotonic() >= self.until_s or tally.connections >= self.most


Attack = Callable[[Target, Tally], Awaitable[None]]


async def send_endless_heads(target: Target, tally: Tally) -> None:
    """Send addresses, headers and header lines without an end."""
    starts = cycle((b"GET /?", b"GET / HTTP/1.1\r\nX-A: ", b"GET / HTTP/1.1\r\n"))

    async def go_on() -> None:
        while not target.has_enough(tally):
            start = next(starts)
            piece = b"X-A: b\r\n" * 8_192 if start.endswith(b"\n") else b"a" * 65_536
            pieces = [start, *([piece] * (ENDLESS_BYTES // len(piece)))]
            await exchange(target, tally, pieces)

    await asyncio.gather(*(go_on() for _ in range(ENDLESS)))


async def hold_silent_connections(target: Target, tally: Tally) -> None:
    """Open connections without a word, others for those that were cut, for ever."""
    chance = Random(1)

    async def hold() -> None:
        while True:
            try:
                async with connected(target, tally) as (reader, _):
                    await reader.read(1)
            except asyncio.CancelledError:
                tally.answers["held to the end"] += 1
                raise
            except OSError:
                pass
            tally.answers["cut"] += 1
            await asyncio.sleep(chance.uniform(0, REOPEN_S))

    most = min(SILENT, target.most, raise_descriptor_limit() // 2)
    await asyncio.gather(*(hold() for _ in range(most)))


async def show_odd_tokens(target: Target, tally: Tally) -> None:
    """Show tokens that cannot be read, to REST and to the stream."""
    for head in cycle(ODD_HEADS):
        if target.has_enough(tally):
            return
        token = urlsafe_b64encode(head.encode()).rstrip(b"=").decode() + ".e30.AA"
        request = (
            f"GET /v1/quotes HTTP/1.1\r\nHost: {target.host}\r\n"
            f"Authorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        )
        await exchange(target, tally, [request.encode()])
        message = json.dumps({"op": "auth", "token": token}).encode()
        pieces = [upgrade(target), AWAIT_ANSWER, frame(1, message)]
        await exchange(target, tally, pieces)
        await asyncio.sleep(PAUSE_S)


async def name_odd_origins(target: Target, tally: Tally) -> None:
    """Come from pages whose origin cannot be read."""
    for origin in cycle(ODD_ORIGINS):
        if target.has_enough(tally):
            return
        header = f"Origin: {origin}\r\n"
        request = (
            f"GET /v1/sse?keys=* HTTP/1.1\r\nHost: {target.host}\r\n{header}"
            "Connection: close\r\n\r\n"
        )
        await exchange(target, tally, [request.encode("latin-1")])
        await exchange(target, tally, [upgrade(target, headers=header)])
        await asyncio.sleep(PAUSE_S)


async def send_rubbish(target: Target, tally: Tally) -> None:
    """Send requests and frames with bytes dropped, doubled and replaced."""
    seeds = count()

    async def go_on() -> None:
        while not target.has_enough(tally):
            pieces = list(rubbish(target, Random(next(seeds))))
            await exchange(target, tally, pieces, within_s=0.5)
            await asyncio.sleep(PAUSE_S)

    await asyncio.gather(*(go_on() for _ in range(TALKERS)))


SILENCE = "silence"

ATTACKS: dict[str, Attack] = {
    "endless heads": send_endless_heads,
    "odd tokens": show_odd_tokens,
    "odd origins": name_odd_origins,
    "rubbish": send_rubbish,
}


def rubbish(target: Target, chance: Random) -> Iterable[bytes]:
    """Return a few pieces of bytes that begin like a request, or like a stream."""
    requests = (
        f"GET /v1/quotes?isins=KR7005930003 HTTP/1.1\r\nHost: {target.host}\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n",
        "GET /v1/sse?keys=*&min_interval_ms=9 HTTP/1.1\r\nLast-Event-ID: a:1\r\n\r\n",
        "HEAD /static/%2e%2e/%00 HTTP/1.0\r\nContent-Length: -1\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
    )
    if chance.random() < 0.5:
        yield mutate(chance.choice(requests).encode(), chance)
        yield mutate(chance.choice(requests).encode(), chance)
        return
    start = upgrade(target)
    yield start if chance.random() < 0.8 else mutate(start, chance)
    yield AWAIT_ANSWER
    for _ in range(chance.randrange(8)):
        message = mutate(b'{"op":"subscribe","keys":["*"],"id":1}', chance)
        sent = frame(chance.choice((0, 1, 1, 1, 2, 3, 8, 9, 10)), message)
        yield mutate(sent, chance) if chance.random() < 0.3 else sent


def mutate(data: bytes, chance: Random) -> bytes:
    """Return the bytes with up to four places dropped, doubled or replaced."""
    changed = bytearray(data)
    for _ in range(chance.randrange(5)):
        at = chance.randrange(len(changed) + 1)
        piece = (b"", changed[at : at + 9] * 2, chance.randbytes(3))[
            chance.randrange(3)
        ]
        changed[at : at + chance.randrange(9)] = piece
    return bytes(changed)


def upgrade(target: Target, query: str = "", headers: str = "") -> bytes:
    """Return a request for a stream."""
    request = UPGRADE.format(query=query, host=target.host, headers=headers)
    return request.encode("latin-1")


def frame(opcode: int, payload: bytes) -> bytes:
    """Return a client's frame (RFC 6455, 5.2), masked with zeros."""
    size = len(payload)
    if size < 126:
        head = bytes((0x80 | opcode, 0x80 | size))
    elif size < 65_536:
        head = bytes((0x80 | opcode, 0xFE)) + size.to_bytes(2)
    else:
        head = bytes((0x80 | opcode, 0xFF)) + size.to_bytes(8)
    return head + bytes(4) + payload


@asynccontextmanager
async def connected(
    target: Target, tally: Tally
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Open a connection. Raises OSError."""
    reader, writer = await asyncio.open_connection(target.host, target.port)
    tally.connections += 1
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def exchange(
    target: Target,
    tally: Tally,
    pieces: Iterable[bytes],
    *,
    within_s: float = PATIENCE_S,
) -> None:
    """Send the pieces on a connection of their own; note how it was answered."""
    received = b""
    end = "end"
    try:
        async with connected(target, tally) as (reader, writer):
            answered = asyncio.Event()
            listening = asyncio.create_task(_listen(reader, answered))
            try:
                async with asyncio.timeout(within_s):
                    for piece in pieces:
                        if listening.done():
                            break
                        if piece is AWAIT_ANSWER:
                            await answered.wait()
                        writer.write(piece)
                        await writer.drain()
                        tally.sent_bytes += len(piece)
                    received, end = await asyncio.shield(listening)
            except TimeoutError:
                end = "held"
            except OSError:
                received, end = await listening
            finally:
                listening.cancel()
    except OSError:
        end = "not connected"
    tally.answers[describe(received, end)] += 1


async def _listen(
    reader: asyncio.StreamReader, answered: asyncio.Event
) -> tuple[bytes, str]:
    received = b""
    try:
        while piece := await reader.read(65_536):
            received = (received + piece)[:65_536]
            answered.set()
            if is_told_all(received):
                break
    except OSError:
        return received, "reset"
    return received, "end"


def is_told_all(received: bytes) -> bool:
    """Say whether a stream was closed, or a request was answered by its first line."""
    if received.startswith(b"HTTP/1.1 101"):
        return close_code(received) is not None
    return b"\r\n" in received


def describe(received: bytes, end: str) -> str:
    """Return the status or the close code of an answer, or how there was none."""
    if received.startswith(b"HTTP/1.1 101"):
        code = close_code(received)
        return f"stream, {end}" if code is None else f"closed with {code}"
    if received.startswith(b"HTTP/1.1 "):
        return received[9:12].decode("latin-1")
    return end


def close_code(received: bytes) -> int | None:
    """Return the code of the close frame among a server's frames, if there is one."""
    at = received.find(b"\r\n\r\n") + 4
    while at + 2 <= len(received):
        opcode, size = received[at] & 15, received[at + 1]
        at += 2
        if size >= 126:
            width = 2 if size == 126 else 8
            size = int.from_bytes(received[at : at + width])
            at += width
        if opcode == 8 and at + 2 <= len(received):
            return int.from_bytes(received[at : at + 2])
        at += size
    return None


async def attack(
    host: str, port: int, seconds: float, most: int = 1_000_000
) -> dict[str, Tally]:
    """Carry out every attack at once; return what each has sent and got.

    ``most`` is how many connections each of them makes.
    """
    target = Target(host, port, time.monotonic() + seconds, most)
    tallies = {name: Tally() for name in (SILENCE, *ATTACKS)}
    silence = asyncio.create_task(hold_silent_connections(target, tallies[SILENCE]))
    await asyncio.gather(
        *(carry_out(target, tallies[name]) for name, carry_out in ATTACKS.items())
    )
    silence.cancel()
    await asyncio.wait([silence])
    return tallies


def print_table(tallies: dict[str, Tally]) -> None:
    """Print what was sent and what came back."""
    print("| attack | connections | MB sent | answers |")
    print("| --- | ---: | ---: | --- |")
    for name, tally in tallies.items():
        answers = ", ".join(f"{text}: {n}" for text, n in tally.answers.most_common())
        sent = tally.sent_bytes / 1e6
        print(f"| {name} | {tally.connections} | {sent:.1f} | {answers} |")


def take_what_is_left() -> None:
    """Let everybody else go first: a stranger has a machine of his own."""
    os.nice(19)
    # Where the kernel weighs sessions against each other, that is not enough.
    with suppress(OSError):
        os.setsid()
        Path("/proc/self/autogroup").write_text("19")


def main() -> None:
    """Bother a gateway for a while; end with 1 if anything was answered with 500."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    url = urlsplit(options.url)
    if url.hostname is None or url.port is None or not is_local_host(url.hostname):
        parser.error("--url: must be like http://127.0.0.1:8000, on loopback")
    take_what_is_left()
    tallies = asyncio.run(attack(url.hostname, url.port, options.seconds))
    print_table(tallies)
    faults = sum(tally.answers["500"] for tally in tallies.values())
    raise SystemExit(1 if faults else 0)


if __name__ == "__main__":
    main()
