"""Trials of a server: its stream, bars, trades, and events."""

import asyncio
import time
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from conformance.server.frame_rules import Frame
from conformance.server.judged_server import (
    PROBLEM,
    Broken,
    Server,
    Trials,
    Untried,
    must,
)
from conformance.specified_chain import sums_of

BAD_KEY = "KR7005930004"
STREAM = Trials()
tries = STREAM.of


@tries("S-4", "S-5", "S-9")
async def a_welcome_then_heartbeats(server: Server) -> None:
    async with server.line() as line:
        beat_s = line.welcome["heartbeat_ms"] / 1_000
        frame = await line.next(1.5 * beat_s + server.patience)
        must(frame["type"] in ("heartbeat", "status"), "S-9", f"{frame} came unasked")


@tries("S-3")
async def the_protocol_is_selected_if_it_is_named(server: Server) -> None:
    for named in ([Subprotocol("tick.v1")], None):
        async with server.line(subprotocols=named) as line:
            chosen = line.connection.subprotocol
            must(chosen == (named and named[0]), "S-3", f"{chosen} for {named}")


@tries("S-6", "S-7")
async def odd_requests_are_refused(server: Server) -> None:
    for query in ("?colour=red", f"?keys={server.keys[0]}&keys={server.keys[0]}"):
        status = await server.refusal(query)
        must(status == 400, "S-6", f"{query} is answered with {status}")
    path = urlsplit(server.url).path
    for asked, wanted in ((path, 426), (path + "-of-nothing", 404)):
        status, media = await server.get(asked)
        is_told = status == wanted and media.startswith(PROBLEM)
        must(is_told, "S-7", f"{asked} is answered with {status}, {media}")


@tries("S-44")
async def a_page_of_another_host_is_refused(server: Server) -> None:
    status = await server.refusal("", origin="https://elsewhere.example")
    must(status == 403, "S-44", f"another origin is answered with {status}")


@tries("S-6", "S-15", "S-16")
async def keys_in_the_address_are_a_subscribe(server: Server) -> None:
    if server.token:
        raise Untried("an address can ask for nothing where tokens are asked for")
    async with server.line(f"?keys={server.keys[0]}") as line:
        line.rules.asked(None)
        ack = await line.until("ack", clause="S-6")
        must(ack["accepted"] == [server.keys[0]] and "id" not in ack, "S-6", f"{ack}")
        await line.snapshot()


@tries("S-2", "S-8", "S-42")
async def each_message_has_one_answer(server: Server) -> None:
    async with server.line() as line:
        for number, text in (
            (1, '{"id":1,"op":"ping","colour":"red"}'),
            ("a", '{"id":"a","op":"dance"}'),
            (None, "[]"),
            (4, '{"id":4,"op":"list"}'),
            (5, '{"id":5,"op":"auth","token":"x.y.z"}'),
        ):
            line.rules.asked(number)
            await line.connection.send(text)
        answers = [await line.until("ack", "error", "pong") for _ in range(5)]
        said = [answer.get("code", answer["type"]) for answer in answers]
        must(said[0] == "pong", "S-2", f"an unknown field was answered with {said[0]}")
        must(said[1] == "bad_request", "S-2", f"an unknown op: {said[1]}")
        must(said[2] == "bad_json" and said[3] == "ack", "S-8", f"answers: {said}")
        is_refused = said[4] in ("bad_request", "not_allowed")
        must(is_refused, "S-42", f"auth is answered with {said[4]}")


@tries("S-10")
async def each_key_is_judged_by_itself(server: Server) -> None:
    async with server.line() as line:
        key = server.keys[0]
        ack = await line.ask(op="subscribe", keys=[BAD_KEY, key, "dance:1"])
        rejected = {one["key"]: one["code"] for one in ack.get("rejected", ())}
        wanted = {BAD_KEY: "bad_isin", "dance:1": "unknown_key"}
        is_kept = ack.get("accepted") == [key] and rejected == wanted
        must(is_kept, "S-10", f"{ack}")
        most = line.welcome["limits"]["keys"]
        many = [f"trades:{number}" for number in range(most + 1)]
        error = await line.ask(op="subscribe", keys=many)
        is_full = error.get("code") in ("key_limit", "rate_limited", "bad_request")
        must(is_full, "S-10", f"{len(many)} keys: {error!s:.100}")
        held = await line.ask(op="list")
        must(held["accepted"] == [key], "S-10", f"{held} after key_limit")


@tries("S-11", "S-12", "S-13")
async def codes_and_markets_are_those_of_the_table(server: Server) -> None:
    rows = await server.listed()
    listed = [row for row in rows if row.get("code") and row.get("market")]
    if not listed:
        raise Untried("the server lists no instrument with a code and a market")
    code, isin, market = (listed[0][name] for name in ("code", "isin", "market"))
    async with server.line() as line:
        keys = [code, f"market:{market}", "market:of nothing"]
        ack = await line.ask(op="subscribe", keys=keys)
        must(ack.get("codes", {}).get(code) == isin, "S-11", f"{code}: {ack}")
        members = ack.get("members", {}).get(f"market:{market}", ())
        is_told = isin in members and "instruments" in ack
        must(is_told, "S-12", f"{market}: {ack}")
        codes = [one["code"] for one in ack["rejected"]]
        refusal = "not_served" if "market" in line.welcome else "unknown_key"
        must(codes == [refusal], "S-13", f"{ack['rejected']}")
        _, items = await line.snapshot()
        wanted = {row["isin"] for row in rows if row.get("market") == market}
        must(items.keys() <= wanted, "S-12", f"{items.keys()} of {wanted}")


@tries("S-18")
async def what_is_given_up_is_sent_no_more(server: Server) -> None:
    async with server.line() as line:
        await line.ask(op="subscribe", keys=["*"])
        await line.snapshot()
        ack = await line.ask(op="unsubscribe", keys=["*"])
        must(ack["accepted"] == ["*"] and not ack["count"], "S-18", f"{ack}")
        end_s = time.monotonic() + line.welcome["heartbeat_ms"] / 1_000
        while (left_s := end_s - time.monotonic()) > 0:
            try:
                frame = await line.next(left_s)
            except Broken:
                break
            must(not frame.get("data"), "S-18", f"still sent: {frame!s:.100}")


@tries("S-15")
async def without_a_snapshot_none_comes(server: Server) -> None:
    async with server.line() as line:
        await line.ask(op="subscribe", keys=[*server.keys], snapshot=False)
        line.rules.is_held = True
        await line.ask(op="ping")
        frame = await line.next()
        must(frame["type"] != "snapshot", "S-15", "a snapshot came unasked")


@tries("S-22")
async def an_interval_is_of_whole_windows(server: Server) -> None:
    async with server.line() as line:
        window = line.welcome["window_ms"]
        asked = min(60_000, 3 * window + 1)
        ack = await line.ask(op="subscribe", keys=["*"], min_interval_ms=asked)
        granted = ack["min_interval_ms"]
        is_kept = granted >= asked and granted % window == 0
        must(is_kept, "S-22", f"{granted} granted, {asked} asked for")


@tries("S-1", "S-16", "S-19", "S-20", "S-21")
async def windows_come_in_order(server: Server) -> None:
    async with server.line() as line:
        await line.ask(op="subscribe", keys=["*"])
        await line.snapshot()
        for _ in range(server.windows):
            await line.until("update")


async def follow_until(server: Server, clause: str, what: str, windows: int) -> None:
    """Follow so many windows, until there is what a clause is about; else Untried."""
    async with server.line() as line:
        await line.ask(op="subscribe", keys=["*"])
        await line.snapshot()
        for _ in range(windows):
            await line.until("update", "snapshot")
            if clause in line.rules.met:
                return
        raise Untried(f"no {what} in {windows} windows")


@tries("S-17")
async def another_epoch_begins_with_a_snapshot(server: Server) -> None:
    await follow_until(server, "S-17", "other epoch began", server.windows)


@tries("S-26")
async def late_trades_come_with_all_their_sums(server: Server) -> None:
    await follow_until(server, "S-26", "trade came too late", 5 * server.windows)


@tries("S-28")
async def a_trade_is_taken_back_by_a_revision(server: Server) -> None:
    await follow_until(server, "S-28", "trade was taken back", 5 * server.windows)


@tries("S-14")
async def one_market_is_all_that_is_served(server: Server) -> None:
    async with server.line() as line:
        market = line.welcome.get("market")
        if market is None:
            raise Untried("the server is not of one market")
        rows = await server.listed()
        others = {row["isin"] for row in rows if row.get("market") != market}
        keys = ["*", f"market:{market}", f"market:not {market}", *others]
        ack = await line.ask(op="subscribe", keys=keys)
        codes = {one["key"]: one["code"] for one in ack["rejected"]}
        wanted = dict.fromkeys(keys[2:], "not_served")
        must(codes == wanted, "S-14", f"{codes} refused, {wanted} are not of {market}")
        _, items = await line.snapshot()
        odd = items.keys() & others
        must(not odd, "S-14", f"{odd} came, which are not of {market}")


@tries("S-27")
async def a_day_is_the_sum_of_its_items(server: Server) -> None:
    async with server.line() as line:
        await line.ask(op="subscribe", keys=["*"])
        last, items = await line.snapshot()
        days = {isin: dict(one["day"]) for isin, one in items.items() if "day" in one}
        if not days:
            raise Untried("no item has a day")
        for _ in range(server.windows):
            last = await line.until("update")
            for item in last["data"]:
                add_to_day(days, item)
        await line.say(op="subscribe", keys=["*"])
        while (frame := await line.next())["type"] != "ack":
            if frame["type"] == "update":
                last = frame
                for item in frame["data"]:
                    add_to_day(days, item)
        now, items = await line.snapshot()
        for isin, day in days.items() if now["offset"] == last["offset"] else ():
            said = items.get(isin, {}).get("day")
            must(said == day, "S-27", f"{isin}: {said}, its items make {day}")


@tries("S-24", "S-25", "S-30")
async def an_item_stands_for_the_trades_of_its_window(server: Server) -> None:
    isin = server.keys[0]
    stood: dict[int, tuple[Any, ...]] = {}
    traded: dict[int, tuple[Any, ...]] = {}
    odd: set[int] = set()
    async with server.line() as line:
        ack = await line.ask(op="subscribe", keys=[f"trades:{isin}"])
        if not ack["accepted"]:
            raise Untried("the trades of an instrument are not served")
        await line.ask(op="subscribe", keys=[isin])
        while len(stood) < server.windows or not any(w >= max(stood) for w in traded):
            frame = await line.until("update", "trades", clause="S-30")
            if frame["type"] == "update":
                for item in frame["data"]:
                    stood[frame["window"]] = sums_of(item)
                odd |= set() if frame.get("merged", 1) == 1 else {frame["window"]}
            for entry in frame.get("entries", ()):
                window = entry["window"]
                if "cancels" in entry or "updates" in entry:
                    odd.add(window)
                else:
                    one = 1, entry["size"], entry["price"] * entry["size"]
                    before = traded.get(window, (0, 0, 0))
                    traded[window] = tuple(map(sum, zip(before, one, strict=True)))
    for window in set(sorted(traded)[1:-1]) & stood.keys() - odd:
        for name, told, made, clause in zip(
            ("trades", "volume", "value"),
            stood[window],
            traded[window],
            ("S-24", "S-25", "S-25"),
            strict=True,
        ):
            is_same = told is None or told == made
            must(is_same, clause, f"{name} of {window}: {told}, its trades make {made}")


def add_to_day(days: dict[str, Any], item: Frame) -> None:
    """Keep a day by the rule of C-15."""
    isin = item["isin"]
    if "day" in item:
        days[isin] = dict(item["day"])
    elif isin not in days or ("volume" not in item and item["trades"] != 1):
        days.pop(isin, None)
    else:
        price, size = item["price"], item["size"]
        alone = {"volume": size, "value": price * size, "high": price, "low": price}
        more, day = item if "volume" in item else alone, days[isin]
        day["trades"] += item["trades"]
        for name in ("volume", "value"):
            day[name] += more[name]
        for name, pick in (("high", max), ("low", min)):
            if name in more:
                day[name] = pick(day.get(name, more[name]), more[name])


@tries("S-33")
async def a_position_is_resumed(server: Server) -> None:
    async with server.line() as line:
        await line.ask(op="subscribe", keys=["*"])
        last, held = await line.snapshot()
    since = {"epoch": last["epoch"], "offset": last["offset"]}
    async with server.line() as line:
        ack = await line.ask(op="subscribe", keys=["*"], since=since)
        must(ack["resumed"] is True, "S-33", f"{since} is not resumed")
        piece, changed = await line.snapshot()
    async with server.line() as line:
        await line.ask(op="subscribe", keys=["*"])
        now, every = await line.snapshot()
    if now["offset"] == piece["offset"]:
        for isin, item in every.items():
            mine = {**held, **changed}.get(isin, {})
            is_same = mine.get("seq") == item["seq"]
            must(is_same, "S-33", f"{isin} is not there after a resume")
    for odd in ({**since, "epoch": "nowhere"}, {**since, "offset": 10**9}):
        async with server.line() as line:
            ack = await line.ask(op="subscribe", keys=["*"], since=odd)
            must(ack["resumed"] is False, "S-33", f"{odd} is resumed")
            _, everything = await line.snapshot()
            must(held.keys() <= everything.keys(), "S-33", f"not all after {odd}")


@tries("S-31", "S-34")
async def bars_have_a_snapshot(server: Server) -> None:
    async with server.line() as line:
        key = f"bars:1m:{server.keys[0]}"
        error = await line.ask(op="subscribe", keys=[key], last=301)
        must(error.get("code") == "bad_request", "S-31", f"last 301: {error}")
        since = {"epoch": "nowhere", "sequence": 1}
        ack = await line.ask(op="subscribe", keys=[key], bars_since=since)
        if not ack["accepted"]:
            raise Untried(f"{key} is not accepted")
        bars = await line.until("bars", clause="S-15")
        must(bars.get("snapshot") and bars["resumed"] is False, "S-34", f"{bars}")


@tries("S-29", "S-32", "S-34")
async def bars_change_and_are_resumed(server: Server) -> None:
    key = f"bars:1m:{server.keys[0]}"
    async with server.line() as line:
        if not (await line.ask(op="subscribe", keys=[key], last=3))["accepted"]:
            raise Untried(f"{key} is not accepted")
        bars = await line.until("bars", clause="S-15")
        try:
            while bars.get("snapshot"):
                bars = await line.until("bars")
            bars = await line.until("bars")
        except Broken:
            raise Untried(f"no bar of {key} has changed") from None
    since = {"epoch": bars["epoch"], "sequence": bars["sequence"]}
    async with server.line() as line:
        await line.ask(op="subscribe", keys=[key], bars_since=since)
        bars = await line.until("bars", clause="S-15")
        is_resumed = bars.get("snapshot") is True and bars["resumed"] is True
        must(is_resumed, "S-34", f"{since} is not resumed: {bars!s:.100}")


@tries("S-45", "S-46", "S-47", "S-48", "S-49", "S-50")
async def rows_by_position_are_the_items(server: Server) -> None:
    async with server.line() as line:
        ack = await line.ask(op="subscribe", keys=[*server.keys], fields=["*"])
        must("fields" in ack, "S-46", f"{ack}")
        last, rows = await line.snapshot()
        names = {**ack.get("names", {}), **last.get("names", {})}
    async with server.line() as line:
        await line.ask(op="subscribe", keys=[*server.keys])
        other, items = await line.snapshot()
    is_one_moment = last["offset"] == other["offset"]
    for number, row in rows.items():
        must(isinstance(row, list), "S-48", f"{row} is no list")
        must(number in names, "S-49", f"{number} has no name")
        must(len(row) <= len(ack["fields"]) + 1, "S-48", f"{row} is too long")
        said = dict(zip(ack["fields"], row[1:], strict=False))
        item = items.get(names[number], {})
        must(item, "S-49", f"{number} is {names[number]}, which is not there")
        for name in ("price", "size", "seq") if is_one_moment else ():
            is_same = said.get(name) == item[name]
            must(is_same, "S-50", f"{name} of {names[number]}: {said} is not {item}")
    async with server.line() as line:
        error = await line.ask(op="subscribe", keys=[*server.keys], fields=["dance"])
        is_told = error.get("code") == "bad_request" and "dance" in error["message"]
        must(is_told, "S-47", f"an unknown field: {error}")


@tries("S-35")
async def closes_have_a_code_and_a_reason(server: Server) -> None:
    async def code_after(
        *data: str | bytes, wanted: int, text: bool | None = None
    ) -> None:
        async with server.line() as line:
            # What a token took of the pace comes back first.
            per_second = line.welcome["limits"]["messages_per_second"]
            await asyncio.sleep(2 / float(per_second))
            with suppress(ConnectionClosed):
                for one in data:
                    await line.connection.send(one, text=text)
            code, reason = await line.end_code()
            is_told = code == wanted and reason
            must(is_told, "S-35", f"closed with {code} {reason!r}, must be {wanted}")
            line.rules.breaches.clear()

    await code_after(b"{}", wanted=1003)
    await code_after(b"\xff", wanted=1007, text=True)
    await code_after(*["dance"] * 20, wanted=4500)
    async with server.line() as line:
        per_second = line.welcome["limits"]["messages_per_second"]
    pings = ['{"op":"ping"}'] * int(100 + 12 * per_second)
    await code_after(*pings, wanted=4429)
    async with server.line() as line:
        most = line.welcome["limits"]["message_bytes"]
    await code_after('{"op":"ping","x":"' + "x" * most + '"}', wanted=1009)


@tries("S-36", "S-37", "S-38", "S-39")
async def events_are_the_same(server: Server) -> None:
    path = f"{server.base}/sse"
    status, media = await server.get(path)
    is_refused = status == 400 and media.startswith(PROBLEM)
    must(is_refused, "S-39", f"no keys: {status} {media}")
    path += f"?keys={','.join(server.keys)}"
    first, place = await server.events(path)
    must(first[0]["type"] == "welcome", "S-36", f"the first event is {first[0]}")
    must(place is not None, "S-37", "no event has an id behind the snapshot")
    for number, is_resumed in ((place, True), ("dance", False)):
        events, _ = await server.events(path, **{"Last-Event-ID": str(number)})
        [ack] = [event for event in events if event["type"] == "ack"]
        is_kept = ack["resumed"] is is_resumed
        must(is_kept, "S-38", f"after the id {number}: resumed {ack['resumed']}")


@tries("S-31")
async def trades_of_five_instruments(server: Server) -> None:
    async with server.line() as line:
        await line.ask(op="subscribe", keys=["*"])
        _, items = await line.snapshot()
        keys = [f"trades:{isin}" for isin in sorted(items) if "@" not in isin][:6]
        ack = await line.ask(op="subscribe", keys=keys)
        codes = [one["code"] for one in ack["rejected"]]
        if len(keys) < 6 or len(codes) == 6:
            raise Untried("it needs six instruments, and a server of their trades")
        must(codes == ["not_allowed"], "S-31", f"six keys of trades: {ack}")
