"""Trials of a server: tokens, and what they allow."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from websockets.exceptions import ConnectionClosed

from conformance.server.judged_server import Broken, Line, Server, Trials, Untried, must
from conformance.server.signed_token import signed_token

TOKENS = Trials()
SUMS = {"volume", "value", "high", "low", "day"}
AUCTION = {"last", "expected_price", "expected_size"}


@asynccontextmanager
async def anew(server: Server, **rights: Any) -> AsyncIterator[Line]:
    """Connect without a token, or with one of these rights. Raises Untried."""
    if not server.secret:
        raise Untried("it needs the secret by which the server checks tokens")
    token = signed_token(server.secret, **rights) if rights else ""
    async with replace(server, token=token).line() as line:
        yield line


async def refused(line: Line, clause: str, what: str, token: str, code: int) -> None:
    """Hold that a token gets an error, then a close with this code."""
    try:
        error = await line.ask(op="auth", token=token)
    except (Broken, ConnectionClosed):
        raise Broken(clause, f"{what} is closed without an error") from None
    must(error.get("code") == "not_allowed", clause, f"{what}: {error!s:.200}")
    closed, _ = await line.end_code()
    must(closed == code, clause, f"{what} is closed with {closed}, must be {code}")


@TOKENS.of("S-35")
async def who_shows_no_token_is_closed(server: Server) -> None:
    async with anew(server) as line:
        code, reason = await line.end_code()
        must(code == 4501 and reason, "S-35", f"closed with {code} {reason!r}")


@TOKENS.of("S-40")
async def nothing_is_told_without_a_token(server: Server) -> None:
    async with anew(server) as line:
        answer = await line.ask(op="subscribe", keys=[*server.keys])
        must(answer.get("code") == "not_allowed", "S-40", f"{answer!s:.200}")
    path, bare = f"{server.base}/sse?keys={server.keys[0]}", replace(server, token="")
    for left_s, wanted in ((None, (401, 403)), (60, (200,)), (3_600, (401, 403))):
        until = {} if left_s is None else {"open_until": time.time() + left_s}
        status, _ = await bare.get(
            f"{path}&ticket={signed_token(bare.secret, **until)}"
        )
        must(status in wanted, "S-40", f"a ticket for {left_s} s is told {status}")
    status, _ = await bare.get(path)
    must(status in (401, 403), "S-40", f"events without a token: {status}")


@TOKENS.of("S-41")
async def a_token_has_an_end_and_restricts(server: Server) -> None:
    async with anew(server) as line:
        endless = signed_token(server.secret, None)
        await refused(line, "S-41", "a token without exp", endless, 4501)
    own, *others = server.keys
    async with anew(server, keys=[own]) as line:
        odd = {"*", *others, f"trades:{own}"}
        ack = await line.ask(op="subscribe", keys=[own, f"bars:1m:{own}", *odd])
        refused_to = {r["key"] for r in ack["rejected"] if r["code"] == "not_allowed"}
        must(refused_to == odd, "S-41", f"a token of {own} alone: {ack!s:.300}")


@TOKENS.of("S-42")
async def a_newer_token_takes_the_place_of_the_first(server: Server) -> None:
    own, *others = server.keys
    async with anew(server, keys=[*server.keys]) as line:
        await line.ask(op="subscribe", keys=[*server.keys])
        await line.snapshot()
        narrow = signed_token(server.secret, keys=[own])
        ack = await line.ask(op="auth", token=narrow)
        dropped = [one["key"] for one in ack.get("rejected", ())]
        is_kept = ack.get("accepted") == [own] and sorted(dropped) == sorted(others)
        must(is_kept, "S-42", f"a token of {own} alone: {ack!s:.200}")
        expired = signed_token(server.secret, -3_600)
        await refused(line, "S-42", "an expired token", expired, 4401)
    async with anew(server) as line:
        await refused(line, "S-42", "a token that is none", "x.y.z", 4501)


@TOKENS.of("S-43")
async def a_code_is_told_to_who_may_know_it(server: Server) -> None:
    own = server.keys[0]
    listed = [one for one in await server.listed() if one.get("code")]
    others = {one["code"]: one["isin"] for one in listed if one["isin"] != own}
    async with anew(server, keys=[own]) as line:
        if not others:
            raise Untried("the server lists no other instrument with a code")
        ack = await line.ask(op="subscribe", keys=[own, *[*others][:3]])
        known = [isin for isin in others.values() if isin in str(ack)]
        must(not known, "S-43", f"a token of {own} is told of {known}: {ack!s:.200}")


@TOKENS.of("S-23", "ST-7")
async def one_price_an_interval_is_one(server: Server) -> None:
    async with anew(server, min_interval_ms=3_600_000, trades=True) as line:
        line.rules.says_sums = False
        keys = [*server.keys, f"trades:{server.keys[0]}"]
        shown: dict[Any, dict[str, Any]] = {}
        for _ in range(2):
            await line.say(op="subscribe", keys=keys)
            while (ack := await line.next())["type"] != "ack":
                prices_are_few(ack)
            codes = [one["code"] for one in ack["rejected"]]
            must(codes == ["not_allowed"], "S-23", f"trades for such a token: {codes}")
            while (frame := await line.next()).get("final") is not True:
                prices_are_few(frame)
            prices_are_few(frame)
            items = {item["isin"]: item for item in frame["data"]}
            before = shown.setdefault(frame["window"], items)
            must(items == before, "S-23", f"of one moment: {items}, then {before}")


def prices_are_few(frame: dict[str, Any]) -> None:
    """Hold that a message tells no price beside those that the token allows."""
    for item in frame.get("data", ()):
        must(not SUMS & item.keys(), "S-23", f"{item} says sums")
    for entry in frame.get("entries", ()):
        must(not AUCTION & entry.keys(), "ST-7", f"{entry} says prices")
