"""Transcripts: what a server says to a client, and what the client must hold. Pure.

docs/conformance.md describes the form.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any

INSTRUMENTS = {"A": "KR7005930003", "B": "KR7000660001", "C": "KR7035420009"}
FIRST_WINDOW = 1_773_964_800_000
WINDOW_MS = 2_000
STEPS = {
    *("follow", "also", "unfollow", "welcome", "asks", "says", "answers", ">", "raw"),
    *("many", "close", "cut", "returns", "away", "quiet", "silent", "beats", "holds"),
    "wait",
}
_ITEM = re.compile(r"\b([ABC](?:@[A-Z]+)?)#(\d+)=([\d.]+)(?:x([\d.]+))?(?:\*(\d+))?")
_NAME = re.compile(r"\b([ABC])\b")
BAR = {
    **{"interval": "1m", "start": FIRST_WINDOW, "end": FIRST_WINDOW + 60_000},
    **{"open": 100, "high": 100, "low": 100, "close": 100, "vwap": 100},
    **{"volume": 1, "value": 100, "trades": 1, "closed": False, "revision": 0},
}
ALWAYS = {"comes_back", "messages"}
TRADE = {"price": 100, "size": 1}


class BadTranscript(ValueError):
    """A transcript is not of the form; the message names its line."""


class Digits(str):
    """A number by its text: no digit of it is lost."""

    __slots__ = ()


@dataclass(frozen=True)
class TranscriptLine:
    """One line: a word, further words, JSON; ``then`` is that behind ``=>``."""

    line: int
    word: str
    words: tuple[str, ...] = ()
    given: Any = None
    then: Any = None
    text: str = ""


@dataclass(frozen=True)
class Transcript:
    """A title, the clauses it tries, what a client must be able to, and the steps.

    A client ``needs`` to say whatever it is asked for.
    """

    title: str
    clauses: tuple[str, ...]
    needs: tuple[str, ...] = ()
    steps: tuple[TranscriptLine, ...] = field(default_factory=tuple)


def parse_transcripts(text: str, name: str = "transcript") -> list[Transcript]:
    """Return the transcripts of a file. Raises BadTranscript."""
    found: list[Transcript] = []
    title, steps = "", list[TranscriptLine]()
    clauses = needs = tuple[str, ...]()
    for number, line in enumerate([*text.splitlines(), "== "], 1):
        word, _, rest = line.strip().partition(" ")
        if word == "==":
            if title:
                said = (step.given for step in steps if step.word == "holds")
                all_needs = {*needs, *(name for given in said for name in given)}
                every = tuple(sorted(all_needs - ALWAYS))
                found.append(Transcript(title, clauses, every, tuple(steps)))
            title, clauses, needs, steps = rest.strip(), (), (), []
        elif word == "clauses":
            clauses = tuple(rest.split())
        elif word == "needs":
            needs = tuple(rest.split())
        elif word and not word.startswith("--"):
            try:
                steps.append(_step(number, word, rest.strip()))
            except ValueError as error:
                raise BadTranscript(f"{name}, line {number}: {error}: {line}") from None
    return found


def _step(number: int, word: str, rest: str) -> TranscriptLine:
    if word not in STEPS:
        raise ValueError(f"{word!r} must be one of {', '.join(sorted(STEPS))}")
    if word == "raw":
        return TranscriptLine(number, word, text=_named(rest))
    before, _, after = rest.partition(" => ")
    at = min((i for i in (before.find(c) for c in "{[") if i >= 0), default=len(before))
    words = tuple(_named(before[:at]).split())
    return TranscriptLine(
        number, word, words, _parsed(before[at:]), _parsed(after), rest
    )


def _parsed(text: str) -> Any:
    if not text.strip():
        return None
    return json.loads(_named(_ITEM.sub(_item, text)), parse_float=Digits)


def _named(text: str) -> str:
    return _NAME.sub(lambda match: INSTRUMENTS[match[1]], text)


def _item(match: re.Match[str]) -> str:
    """Return the object of ``A#5=0.30x2*3``: seq 5, price 0.30, size 2, 3 trades."""
    isin, seq, price, size, trades = match.groups()
    time = FIRST_WINDOW * 1_000 + int(seq) * 1_000
    return (
        f'{{"isin":"{isin}","time":{time},"seq":{seq},"price":{price},'
        f'"size":{size or 1},"trades":{trades or 0}}}'
    )


def encode(value: Any) -> str:
    """Return JSON, with the digits of the transcript."""
    if isinstance(value, Digits):
        return str(value)
    if isinstance(value, dict):
        pairs = (f"{json.dumps(name)}:{encode(one)}" for name, one in value.items())
        return f"{{{','.join(pairs)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(encode, value))}]"
    return json.dumps(value)


def filled(kind: str, given: dict[str, Any] | None, now_us: int) -> dict[str, Any]:
    """Return a message of the server: what a transcript leaves out is added.

    ``"now+300"`` is the moment 300 ms from now, in microseconds.
    """
    given = dict(given or {})
    message: dict[str, Any] = {"type": kind}
    if kind in ("snapshot", "update", "heartbeat"):
        offset = given.get("offset", 0)
        message |= {"epoch": "e1", "offset": offset}
        message["window"] = FIRST_WINDOW + offset * WINDOW_MS
        if kind == "heartbeat":
            message["server_time"] = now_us
        else:
            message |= {"final": True} if kind == "snapshot" else {}
            message["data"] = []
            given["data"] = [_joined(item) for item in given.get("data", ())]
    elif kind == "bars":
        message |= {"epoch": "b1", "sequence": 0}
        given["bars"] = [{**BAR, **bar} for bar in given.get("bars", ())]
    elif kind == "trades":
        message |= {"isin": given["isin"], "missed": 0}
        dated = {"isin": given["isin"], "time": FIRST_WINDOW * 1_000}
        dated["window"] = FIRST_WINDOW
        given["entries"] = [
            {**dated, "seq": number, **({} if "cancels" in one else TRADE), **one}
            for number, one in enumerate(given["entries"], given["number"])
        ]
    elif kind == "statuses":
        message |= {"epoch": "s1", "snapshot": False, "missed": 0, "entries": []}
        given["entries"] = [
            {"time": FIRST_WINDOW * 1_000 + one["number"], "taken": now_us, **one}
            for one in given.get("entries", ())
        ]
    elif kind == "status":
        message |= {"since_window": None, "message": "as told"}
    elif kind == "notice":
        message |= {"code": "restart", "message": "as told"}
    return {**message, **{name: _moment(one, now_us) for name, one in given.items()}}


def updated(isin: str, offset: int) -> dict[str, Any]:
    """Return what an update of one trade has; ``seq`` and price are its offset."""
    time = FIRST_WINDOW * 1_000 + offset * 1_000
    item = {"isin": isin, "time": time, "seq": offset, "price": offset, "size": 1}
    return {"offset": offset, "data": [{**item, "trades": 1}]}


def _joined(item: Any) -> Any:
    """Join ``[item, {"further": fields}]``; a row by position stays as it is."""
    if isinstance(item, list) and len(item) == 2 and isinstance(item[0], dict):
        return {**item[0], **item[1]}
    return item


def _moment(value: Any, now_us: int) -> Any:
    if isinstance(value, str) and value.startswith("now+"):
        return now_us + int(value[4:]) * 1_000
    return value
