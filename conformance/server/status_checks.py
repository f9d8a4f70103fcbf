"""Trials of a server: trading statuses."""

from contextlib import AsyncExitStack

from conformance.server.frame_rules import BANDS, Frame
from conformance.server.judged_server import Broken, Line, Server, Trials, Untried, must

STATUSES = Trials()
FOLLOWED = 3
"""So many messages of live statuses are looked at."""


async def live(line: Line, clause: str) -> Frame:
    """Return the next statuses that are neither current ones nor those of a resume."""
    while True:
        frame = await line.until("statuses", clause=clause)
        if not frame["snapshot"] and not frame.get("resumed"):
            return frame


async def before_snapshot(line: Line) -> tuple[list[Frame], dict[str, Frame]]:
    """Return the statuses that come before the snapshot of items, and those items."""
    told, items = list[Frame](), dict[str, Frame]()
    while True:
        frame = await line.until("statuses", "snapshot", clause="S-15")
        if frame["type"] == "statuses":
            told += [] if items else [frame]
        else:
            items |= {item["isin"]: item for item in frame["data"]}
            if frame["final"]:
                return told, items


def slot_of(entry: Frame) -> tuple[object, ...]:
    return entry["isin"], entry.get("venue"), entry["status"] == BANDS


@STATUSES.of("ST-1", "ST-2", "ST-3", "ST-4", "ST-5", "ST-6", "ST-8")
async def statuses_are_numbered_current_and_resumed(server: Server) -> None:
    async with AsyncExitStack() as lines:
        line, slow = [await lines.enter_async_context(server.line()) for _ in range(2)]
        await line.ask(op="subscribe", keys=["*"])
        await slow.ask(op="subscribe", keys=["*"], min_interval_ms=60_000)
        try:
            frames = [await live(line, "ST-1") for _ in range(FOLLOWED)]
        except Broken:
            raise Untried("no statuses came") from None
        epoch = frames[0]["epoch"]
        entries = [entry for frame in frames for entry in frame["entries"]]
        numbers = [entry["number"] for entry in entries]
        is_part = "market" in line.welcome
        is_whole = numbers[-1] - numbers[0] == len(numbers) - 1
        must(is_whole or is_part, "ST-3", f"to who holds all, numbers {numbers} came")
        try:
            while (await live(slow, "ST-2"))["entries"][-1]["number"] < numbers[-1]:
                pass
        except Broken:
            raise Broken("ST-2", "statuses wait for the interval") from None
    first, newest = entries[0], {slot_of(entry): entry for entry in entries}
    since = {"epoch": epoch, "number": first["number"]}
    async with server.line() as line:
        await line.ask(op="subscribe", keys=["*"], statuses_since=since)
        told, items = await before_snapshot(line)
        is_resumed = bool(told) and told[0].get("resumed") is True
        must(is_resumed, "ST-8", f"{since} is answered with {told!s:.200}")
        missed = [entry["number"] for entry in told[0]["entries"]]
        count = len(missed) + (told[0]["missed"] or 0)
        is_whole = bool(missed) and missed[-1] - first["number"] == count
        must(is_whole or is_part, "ST-8", f"after {since}: {told[0]!s:.300}")
        snapshots = [frame for frame in told if frame["snapshot"]]
        must(snapshots, "ST-4", f"no current ones after {since}")
        current = {slot_of(e): e["number"] for e in snapshots[0]["entries"]}
        for slot, entry in newest.items():
            is_there = current.get(slot, 0) >= entry["number"]
            must(is_there or len(current) == 500, "ST-4", f"{entry} is not current")
        await last_trades_are_shown(line, items, entries)
    async with server.line() as line:
        odd = {**since, "epoch": "nowhere"}
        await line.ask(op="subscribe", keys=[*server.keys], statuses_since=odd)
        told, _ = await before_snapshot(line)
        is_told = told and told[0].get("resumed") and told[0]["missed"] is None
        must(is_told, "ST-8", f"{odd} is answered with {told!s:.200}")


async def last_trades_are_shown(
    line: Line, items: dict[str, Frame], entries: list[Frame]
) -> None:
    """Look at ``last`` of statuses: no newer trade than what is shown afterwards."""
    for _ in range(2):
        frame = await line.until("update")
        items |= {item["isin"]: item for item in frame["data"]}
    for entry in entries:
        last, item = entry.get("last"), items.get(entry["isin"])
        if last is not None and item is not None and not item.get("revision"):
            is_form = {"time", "seq", "price"} <= last.keys()
            must(is_form, "ST-6", f"last of {entry} must have time, seq and price")
            is_known = (last["time"], last["seq"]) <= (item["time"], item["seq"])
            must(is_known, "ST-6", f"{last} is newer than all that is shown: {item}")
