"""What a change of the issue table costs a gateway with clients of every sector.

The gateway runs on one core. Each client holds one sector of the simulated market, so
that a window is another frame for each sector. The table changes in three ways: every
previous close (the morning), one sector's name, one issue's sector. Measured are the
time from the end of the load until the last client concerned has been told (the gateway
looks twice a second), and what the gateway uses of its core meanwhile, beside what it
uses in as long a time without a change.
"""

import argparse
import asyncio
import multiprocessing
import time
from collections import Counter
from dataclasses import replace
from multiprocessing.connection import Connection
from statistics import median
from typing import Any

import orjson
from machine import end_on_signals
from picows import WSFrame, WSListener, WSMsgType, WSTransport, ws_connect
from pinned_gateway import ISSUES, LISTING, WINDOW_S, Bench, pin, started

from deploy.loadtest.system.machine import describe_machine
from ingest.issue_table.issue_entry import IssueEntry
from ingest.issue_table.issue_list import IssueList
from ingest.issue_table.redis_issue_store import RedisIssueStore
from ingest.issue_table.table_loader import load_list

TURNS = 3
SPAN_S = 2.0
CONNECTING_AT_ONCE = 200


class _Client(WSListener):
    """Counts what it is told; ``place`` is where all clients of the process count."""

    def __init__(self, place: dict[str, Any]) -> None:
        self._place = place

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        if frame.msg_type != WSMsgType.TEXT:
            return
        text = frame.get_payload_as_bytes()
        if text.startswith(b'{"type":"ack"'):
            self._place["left"] -= 1
            if not self._place["left"]:
                self._place["all_joined"].set()
        elif text.startswith(b'{"type":"members"'):
            orjson.loads(text)
            self._place["told"] += 1
            self._place["last_s"] = time.monotonic()


def main() -> None:
    """Measure each way for each number of clients."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", default="1000,5000")
    arguments = parser.parse_args()
    end_on_signals()
    print(f"Machine: {describe_machine()}\n")
    print(
        "| clients | change | told | last told after, ms: median, worst "
        "| gateway's core, ms: with it, without |"
    )
    print("| ---: | --- | ---: | ---: | ---: |")
    for count in map(int, arguments.clients.split(",")):
        with started() as bench:
            measure(bench, count)


def measure(bench: Bench, count: int) -> None:
    """Connect clients, change the table in each way, and print what that took."""
    entries = [
        IssueEntry(i.isin, i.code, i.name, i.market, i.sector, str(i.base_price))
        for i in LISTING
    ]
    store = RedisIssueStore(bench.client, "tt")
    load_list(store, IssueList(entries), is_forced=True)
    sectors = Counter(entry.sector or "" for entry in entries)
    keys = [f"sector:{name}" for name in sectors]
    time.sleep(1)
    spawn = multiprocessing.get_context("spawn")
    mine, theirs = spawn.Pipe()
    crowd = spawn.Process(target=_follow, args=(theirs, bench.port, keys, count))
    crowd.start()
    try:
        assert mine.recv() == count
        largest = sectors.most_common(1)[0][0]
        _measure_all(bench, store, entries, largest, mine, count)
    finally:
        crowd.terminate()
        crowd.join()


def _measure_all(
    bench: Bench,
    store: RedisIssueStore,
    entries: list[IssueEntry],
    sector: str,
    crowd: Connection,
    count: int,
) -> None:
    for change in ("every previous close", "one name", "one issue"):
        tolds, waits_ms, with_ms, without_ms = [], [], [], []
        for turn in range(TURNS):
            bench.publish(ISSUES[:900], 1)
            time.sleep(WINDOW_S / 4)
            busy_s = bench.busy_s()
            time.sleep(SPAN_S)
            without_ms.append((bench.busy_s() - busy_s) * 1e3)
            crowd.send(None)
            crowd.recv()
            busy_s = bench.busy_s()
            changed = _change(entries, change, sector, turn)
            load_list(store, IssueList(changed), is_forced=True)
            began_s = time.monotonic()
            time.sleep(SPAN_S)
            with_ms.append((bench.busy_s() - busy_s) * 1e3)
            crowd.send(None)
            told, last_s = crowd.recv()
            tolds.append(told)
            waits_ms.append((last_s - began_s) * 1e3 if told else 0.0)
            load_list(store, IssueList(entries), is_forced=True)
            time.sleep(1)
        waits = f"{median(waits_ms):.0f}, {max(waits_ms):.0f}" if any(tolds) else ""
        print(
            f"| {count:,} | {change} | {median(tolds):,.0f} | {waits} "
            f"| {median(with_ms):.0f}, {median(without_ms):.0f} |",
            flush=True,
        )


def _change(
    entries: list[IssueEntry], change: str, sector: str, turn: int
) -> list[IssueEntry]:
    if change == "every previous close":
        return [replace(e, prev_close=f"{e.prev_close}{turn}") for e in entries]
    of_sector = [entry for entry in entries if entry.sector == sector]
    moved = of_sector if change == "one name" else of_sector[:1]
    other = next(e.sector for e in entries if e.sector != sector)
    name = f"{sector} {turn}" if change == "one name" else other
    isins = {entry.isin for entry in moved}
    return [replace(e, sector=name) if e.isin in isins else e for e in entries]


def _follow(crowd: Connection, port: int, keys: list[str], count: int) -> None:
    pin(1)
    asyncio.run(_follow_all(crowd, port, keys, count))


async def _follow_all(
    crowd: Connection, port: int, keys: list[str], count: int
) -> None:
    place: dict[str, Any] = {"left": count, "told": 0, "last_s": 0.0}
    place["all_joined"] = asyncio.Event()
    transports = []
    for begin in range(0, count, CONNECTING_AT_ONCE):
        numbers = range(begin, min(begin + CONNECTING_AT_ONCE, count))
        transports += await asyncio.gather(
            *(_connect(place, port, n, keys[n % len(keys)]) for n in numbers)
        )
    await place["all_joined"].wait()
    crowd.send(count)
    loop = asyncio.get_running_loop()
    while True:
        await loop.run_in_executor(None, crowd.recv)
        crowd.send((place["told"], place["last_s"]))
        place["told"] = 0


async def _connect(place: dict[str, Any], port: int, number: int, key: str) -> Any:
    transport, _ = await ws_connect(
        lambda: _Client(place),
        f"ws://127.0.0.1:{port}/v1/stream",
        local_addr=(f"127.0.0.{2 + number // 500}", 0),
    )
    message = orjson.dumps({"op": "subscribe", "keys": [key]})
    transport.send(WSMsgType.TEXT, message)
    return transport


if __name__ == "__main__":
    main()
