"""How many trades a second a pipe brings into a log of Redis.

`tickthrottle ingest` reads a file, which is a pipe whose writer is never late, and
appends to a server of its own: JSON lines as the log wants them, JSON lines with a map
and milliseconds, CSV. Beside it the floor: the same trades, encoded beforehand,
appended by the same writer in one loop. The forms come in turn, round after round. The
time is from the first append to the last, as the command reports it, without its start.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from machine import NAMESPACE, Server, end_on_signals, running_server

from deploy.loadtest.system.machine import describe_machine
from ingest.feed.supply import CHUNK
from ingest.sources.simulator import Simulator
from ingest.tradelog.redis_log_reader import open_log
from ingest.tradelog.redis_log_writer import RedisLogWriter

PARTITIONS = 4
CAP = 100_000_000
REPORT = re.compile(r"acknowledged=(\d+).* seconds=([\d.]+)")
NESTED = "isin=sym,price=d.px,size=d.qty,seq=d.id,time=ts"


def main() -> None:
    """Run every form in turn and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trades", type=int, default=500_000, help="of each run")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    end_on_signals()
    payloads = _simulate(arguments.trades)
    forms: dict[str, tuple[Callable[[bytes], bytes], list[str]]] = {
        "JSON lines, passed on as they are": (bytes, []),
        "JSON lines with a map, milliseconds": (
            _nested,
            ["--map", NESTED, "--form", "time-unit=ms"],
        ),
        "CSV": (_csv, []),
    }
    rates: dict[str, list[float]] = defaultdict(list)
    for _ in range(arguments.rounds):
        for name, (encode, options) in forms.items():
            lines = [encode(payload) for _, payload in payloads]
            if encode is _csv:
                lines.insert(0, b"isin,time,seq,price,size")
            with running_server() as server:
                rates[name].append(_ingest(server, lines, options, len(payloads)))
        with running_server() as server:
            rates["floor: the writer alone"].append(_append(server, payloads))
    print(f"\n{arguments.trades:,} trades, {arguments.rounds} runs of each, in turn\n")
    print("| source | trades/s, median | lowest | highest |")
    print("| --- | ---: | ---: | ---: |")
    for name, found in rates.items():
        cells = (median(found), min(found), max(found))
        print(f"| {name} | " + " | ".join(f"{cell:,.0f}" for cell in cells) + " |")
    print(f"\nMachine: {describe_machine()}")


def _simulate(count: int) -> list[tuple[str, bytes]]:
    market = Simulator(rate=50_000, seconds=count / 50_000 + 1, repeats=0)
    found = []
    for event in market.events(1_773_964_800_000_000):
        found.append((event.key, event.payload))
        if len(found) == count:
            break
    return found


def _nested(payload: bytes) -> bytes:
    trade = json.loads(payload)
    rest = {"px": trade["price"], "qty": trade["size"], "id": trade["seq"]}
    whole = {"sym": trade["isin"], "ts": trade["time"] // 1_000, "d": rest}
    return json.dumps(whole, separators=(",", ":")).encode()


def _csv(payload: bytes) -> bytes:
    trade = json.loads(payload)
    names = ("isin", "time", "seq", "price", "size")
    return ",".join(str(trade[name]) for name in names).encode()


def _ingest(
    server: Server, lines: Sequence[bytes], options: Sequence[str], count: int
) -> float:
    source = server.folder / "trades"
    source.write_bytes(b"\n".join(lines))
    program = Path(sys.executable).parent / "tickthrottle"
    done = subprocess.run(
        [program, "ingest", source, *options, "--redis-url", server.url],
        env={
            "TICKTHROTTLE_PARTITIONS": str(PARTITIONS),
            "TICKTHROTTLE_TRADE_LOG_CAP": str(CAP),
            "TICKTHROTTLE_LOG_FORMAT": "console",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    found = REPORT.search(done.stderr)
    if done.returncode or found is None or int(found[1]) != count:
        raise SystemExit(f"ingest: {done.returncode}\n{done.stderr}")
    return count / float(found[2])


def _append(server: Server, payloads: Sequence[tuple[str, bytes]]) -> float:
    info = open_log(server.client, NAMESPACE, PARTITIONS)
    writer = RedisLogWriter(server.client, NAMESPACE, info, CAP)
    began = time.monotonic()
    for begin in range(0, len(payloads), CHUNK):
        writer.append(payloads[begin : begin + CHUNK])
    return len(payloads) / (time.monotonic() - began)


if __name__ == "__main__":
    main()
