"""How many trades a second one feed brings from an exchange into a log of Redis.

A server in a process of its own does the real handshake and then sends frames that were
made beforehand, as fast as they are taken: so the feed is the slow one. Each adapter
runs `tickthrottle feed` in a process, which decodes, checks, encodes and appends to a
server of its own. The time is from the first append to the last, without the start;
processor time is that of the feed's process and its threads over the whole run, less
what a run with no trades costs.
"""

import argparse
import json
import multiprocessing
import re
import socket
import subprocess
import sys
import time
from base64 import b64encode
from collections import defaultdict
from collections.abc import Callable, Sequence
from hashlib import sha1
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

import psutil
from machine import Server, end_on_signals, running_server
from websockets.frames import Frame, Opcode

from deploy.loadtest.system.machine import describe_machine

PARTITIONS = 4
CAP = 100_000_000
SYMBOLS = 100
T0_MS = 1_773_964_800_000
REPORT = re.compile(r"acknowledged=(\d+).* seconds=([\d.]+)")
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

Speak = Callable[[int, str], str]
"""Return the frame of the n-th trade, of a symbol."""


def main() -> None:
    """Run every adapter in turn and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trades", type=int, default=200_000, help="of each run")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    end_on_signals()
    adapters: dict[str, tuple[str, Speak, int]] = {
        "binance": ("S%dUSDT", _binance, 1),
        "upbit": ("KRW-S%d", _upbit, 1),
        "alpaca, 10 trades a frame": ("S%d", _alpaca, 10),
        "kis, 3 trades a frame": ("%05d0", _kis, 3),
    }
    rates: dict[str, list[float]] = defaultdict(list)
    costs: dict[str, list[float]] = defaultdict(list)
    for _ in range(arguments.rounds):
        for name, (form, speak, together) in adapters.items():
            symbols = [form % number for number in range(SYMBOLS)]
            if name.startswith("kis"):
                # As many as it gives one key.
                symbols = symbols[:41]
            count = arguments.trades
            frames = _frames(symbols, speak, together, count)
            rate, busy_s = _follow(name.partition(",")[0], symbols, frames, count)
            _, idle_s = _follow(name.partition(",")[0], symbols, frames[:1], together)
            rates[name].append(rate)
            costs[name].append((busy_s - idle_s) / count * 1e6)
    print(f"\n{arguments.trades:,} trades, {arguments.rounds} runs of each, in turn\n")
    print("| adapter | trades/s, median | lowest | highest | µs of a core a trade |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, found in rates.items():
        cells = (median(found), min(found), max(found))
        shown = " | ".join(f"{cell:,.0f}" for cell in cells)
        print(f"| {name} | {shown} | {median(costs[name]):.1f} |")
    print(f"\nMachine: {describe_machine()}")


def _frames(
    symbols: Sequence[str], speak: Speak, together: int, count: int
) -> list[bytes]:
    """Return WebSocket frames of ``together`` trades each, one symbol after another."""
    frames = []
    for first in range(0, count, together):
        parts = [
            speak(number, symbols[number % len(symbols)])
            for number in range(first, min(first + together, count))
        ]
        text = _joined(parts)
        frames.append(Frame(Opcode.TEXT, text.encode()).serialize(mask=False))
    return frames


def _joined(parts: list[str]) -> str:
    if "^" in parts[0]:
        return f"0|H0STCNT0|{len(parts):03}|" + "^".join(parts)
    return "[" + ",".join(parts) + "]" if '"T":"t"' in parts[0] else parts[0]


def _binance(number: int, symbol: str) -> str:
    trade = number // SYMBOLS
    event = {
        "e": "trade",
        "E": T0_MS + trade + 1,
        "s": symbol,
        "t": 4_000_000_000 + trade,
        "p": f"{100 + number % 1000}.{number % 100:02}000000",
        "q": f"0.{1 + number % 99999:05}000",
        "T": T0_MS + trade,
        "m": number % 2 == 0,
        "M": True,
    }
    stream = f"{symbol.lower()}@trade"
    return json.dumps({"stream": stream, "data": event}, separators=(",", ":"))


def _upbit(number: int, symbol: str) -> str:
    trade = number // SYMBOLS
    fields = {
        "ty": "trade",
        "cd": symbol,
        "tms": T0_MS + trade + 1,
        "td": "2026-03-20",
        "ttm": "00:00:00",
        "ttms": T0_MS + trade,
        "tp": 1000.0 + number % 1000,
        "tv": 0.5 + number % 9999 / 1e4,
        "ab": "BID",
        "pcp": 990.0,
        "c": "RISE",
        "cp": 10.0,
        "sid": (T0_MS + trade) * 1000 + number % 1000,
        "bap": 1001.0,
        "bas": 0.125,
        "bbp": 1000.0,
        "bbs": 0.25,
        "st": "REALTIME",
    }
    return json.dumps(fields, separators=(",", ":"))


def _alpaca(number: int, symbol: str) -> str:
    fields = {
        "T": "t",
        "S": symbol,
        "i": 52_983_525_029_461 + number,
        "x": "D",
        "p": 126.55 + number % 100,
        "s": 1 + number % 500,
        "c": ["@", "I"],
        "z": "C",
        "t": f"2026-03-20T14:{number // 60_000 % 60:02}:{number // 1000 % 60:02}."
        f"{number % 1000:03}123456Z",
    }
    return json.dumps(fields, separators=(",", ":"))


def _kis(number: int, symbol: str) -> str:
    fields = ["12345"] * 46
    trade = number // 41
    fields[0], fields[1], fields[2] = symbol, "094751", str(71_900 + number % 10 * 100)
    fields[12], fields[13], fields[14] = "1", str(1 + trade), "595403999350"
    fields[21], fields[33], fields[34], fields[43] = "1", "20260320", "20", "0"
    return "^".join(fields)


def _serve(frames: list[bytes], ready: Connection) -> None:
    """Send frames to whoever comes, after a handshake; then wait to be ended."""
    blob = b"".join(frames)
    with socket.create_server(("127.0.0.1", 0)) as server:
        ready.send(server.getsockname()[1])
        while True:
            client, _ = server.accept()
            with client:
                head = b""
                while b"\r\n\r\n" not in head:
                    head += client.recv(65_536)
                _answer(client, head, blob)


def _answer(client: socket.socket, head: bytes, blob: bytes) -> None:
    if head.startswith(b"POST"):
        body = b'{"approval_key":"key"}'
        length = f"Content-Length: {len(body)}\r\n\r\n".encode()
        client.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + length + body)
        return
    found = re.search(rb"(?i)sec-websocket-key: *(\S+)", head)
    if found is None:
        raise SystemExit("no handshake")
    accept = b64encode(sha1(found[1] + GUID).digest())
    client.sendall(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
        b"Connection: Upgrade\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n" + blob
    )
    while client.recv(65_536):
        pass


def _follow(
    name: str, symbols: Sequence[str], frames: list[bytes], count: int
) -> tuple[float, float]:
    """Return trades a second, and the processor time of the whole run."""
    ours, theirs = multiprocessing.Pipe()
    exchange = multiprocessing.Process(target=_serve, args=(frames, theirs))
    exchange.start()
    try:
        with running_server() as server:
            return _run(server, name, symbols, ours.recv(), count)
    finally:
        exchange.kill()
        exchange.join()


def _run(
    server: Server, name: str, symbols: Sequence[str], port: int, count: int
) -> tuple[float, float]:
    program = Path(sys.executable).parent / "tickthrottle"
    address = f"//127.0.0.1:{port}"
    options = ["--url", f"ws:{address}", "--rest-url", f"http:{address}"]
    feed = subprocess.Popen(
        [
            *(program, "feed", name, "--symbols", ",".join(symbols)),
            *(*options, "--redis-url", server.url),
        ],
        env={
            "TICKTHROTTLE_PARTITIONS": str(PARTITIONS),
            "TICKTHROTTLE_TRADE_LOG_CAP": str(CAP),
            "TICKTHROTTLE_LOG_FORMAT": "console",
            **{f"TICKTHROTTLE_{name.upper()}_{key}": "k" for key in ("KEY", "SECRET")},
            **{f"TICKTHROTTLE_KIS_{key}": "k" for key in ("APPKEY", "SECRETKEY")},
        },
        stderr=subprocess.PIPE,
        text=True,
    )
    process = psutil.Process(feed.pid)
    stamps = _wait(server, feed, count)
    used = process.cpu_times()
    feed.terminate()
    _, told = feed.communicate()
    found = REPORT.search(told)
    if feed.returncode or found is None or int(found[1]) != count:
        raise SystemExit(f"{name}: {feed.returncode}\n{told}")
    return count / max(stamps[1] - stamps[0], 1e-3), used.user + used.system


def _wait(
    server: Server, feed: "subprocess.Popen[str]", count: int
) -> tuple[float, float]:
    """Return when the first and the last entry were appended, by the log's clock."""
    keys: list[Any] = []
    while sum(server.client.xlen(key) for key in keys) < count:
        if feed.poll() is not None:
            raise SystemExit(feed.stderr.read() if feed.stderr else "the feed ended")
        keys = [*server.client.scan_iter(match="*", _type="stream")]
        time.sleep(0.05)
    firsts = [server.client.xrange(key, count=1)[0][0] for key in keys]
    lasts = [server.client.xrevrange(key, count=1)[0][0] for key in keys]
    return min(map(_seconds, firsts)), max(map(_seconds, lasts))


def _seconds(entry_id: bytes | str) -> float:
    text = entry_id.decode() if isinstance(entry_id, bytes) else entry_id
    return int(text.partition("-")[0]) / 1e3


if __name__ == "__main__":
    main()
