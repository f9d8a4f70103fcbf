"""Keys that stand for markets and sectors, while the instrument table changes."""

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.protocol.key_sets import KeySets
from gateway.stream.board import Board
from gateway.stream.commands import ClientCommands
from ingest.instrument_table.instrument_entry import InstrumentEntry
from ingest.instrument_table.known_instruments import Instruments
from tests.examples import many
from tests.gateway.samples import (
    EPOCH,
    HYNIX,
    NAVER,
    SAMSUNG,
    make_board,
    make_commands,
    make_isins,
    make_row,
)
from tests.gateway.stream.test_commands import drain, isins, publish, say


def table(**sectors: Iterable[str]) -> Instruments:
    """Return a table of these sectors; all of its instruments are of one market."""
    pairs = ((isin, name) for name, isins in sectors.items() for isin in isins)
    return Instruments(
        InstrumentEntry(i, market="KOSPI", sector=name) for i, name in pairs
    )


CHIPS = table(chips=[SAMSUNG, HYNIX], media=[NAVER])


class Line:
    """A client, the board that it sees, and the table it knows markets by."""

    def __init__(self, *traded: str, instruments: Instruments = CHIPS) -> None:
        self.board = make_board(*map(make_row, traded))
        self.key_sets = KeySets(self.board.numbers)
        self.key_sets.change_instruments(instruments)
        # A story has more messages than one may say at once.
        self.commands = make_commands(
            self.board, self.key_sets, messages_per_second=100
        )

    def say(self, **message: Any) -> dict[str, Any]:
        """Send a message and return the answer."""
        return say(self.commands, **message)

    def publish(self, *isins: str) -> None:
        """Publish a newer trade of each instrument."""
        seq = self.board.position.offset + 1
        publish(self.board, self.commands, *(make_row(i, seq=seq) for i in isins))

    def relist(self, instruments: Instruments) -> None:
        """Have another table, and the client get its turn, as the hub does."""
        self.commands.delivery.take_in()
        self.key_sets.change_instruments(instruments)

    def frames(self) -> list[tuple[Any, ...]]:
        """Return what is sent: members or the instruments of a snapshot or update."""
        shown: list[tuple[Any, ...]] = []
        for frame in drain(self.commands):
            if frame["type"] == "members":
                shown.append(("members", frame["members"], frame["renamed"]))
            else:
                shown.append((frame["type"], isins(frame)))
        return shown


def test_a_market_stands_for_its_instruments() -> None:
    """The ack says which; nothing else comes."""
    line = Line(SAMSUNG, HYNIX, NAVER)
    ack = line.say(op="subscribe", keys=["sector:chips"])
    assert (ack["accepted"], ack["count"]) == (["sector:chips"], 1)
    assert ack["members"] == {"sector:chips": [HYNIX, SAMSUNG]}
    assert ack["instruments"] == CHIPS.digest
    assert line.frames() == [("snapshot", [HYNIX, SAMSUNG])]
    line.publish(SAMSUNG, NAVER)
    assert line.frames() == [("update", [SAMSUNG])]
    assert line.say(op="list")["accepted"] == ["sector:chips"]
    ack = line.say(op="unsubscribe", keys=["sector:chips"])
    assert (ack["accepted"], ack["count"]) == (["sector:chips"], 0)
    line.publish(SAMSUNG)
    assert line.frames() == []


def test_an_instrument_of_two_keys_comes_once() -> None:
    """Given up by one of its names it still comes by the other."""
    line = Line(SAMSUNG, HYNIX, NAVER)
    line.say(op="subscribe", keys=["market:KOSPI", "sector:chips", SAMSUNG])
    [(kind, shown)] = line.frames()
    assert (kind, sorted(shown)) == ("snapshot", [HYNIX, SAMSUNG, NAVER])
    line.publish(SAMSUNG)
    assert line.frames() == [("update", [SAMSUNG])]
    line.say(op="unsubscribe", keys=["market:KOSPI", SAMSUNG])
    line.publish(SAMSUNG, NAVER)
    assert line.frames() == [("update", [SAMSUNG])]


def test_an_instrument_that_moves_takes_its_followers_along() -> None:
    """First which instruments it is now, then a snapshot of what the client lacks."""
    line = Line(SAMSUNG, HYNIX, NAVER)
    line.say(op="subscribe", keys=["sector:chips"])
    line.frames()
    line.publish(SAMSUNG, HYNIX)
    line.relist(table(chips=[SAMSUNG, NAVER], media=[HYNIX]))
    members = {"sector:chips": [SAMSUNG, NAVER]}
    assert line.frames() == [
        ("members", members, {}),
        ("snapshot", [NAVER]),
        ("update", [SAMSUNG]),
    ]
    line.publish(SAMSUNG, HYNIX, NAVER)
    assert line.frames() == [("update", [SAMSUNG, NAVER])]


def test_a_change_that_moves_nothing_is_not_told() -> None:
    """A new previous close, or an instrument of another sector."""
    line = Line(SAMSUNG, NAVER)
    line.say(op="subscribe", keys=["sector:chips", NAVER])
    line.frames()
    before = line.commands.delivery
    closes = [InstrumentEntry(SAMSUNG, sector="chips", prev_close="1")]
    line.relist(Instruments([*closes, InstrumentEntry(HYNIX, sector="chips")]))
    assert not before.is_owed
    assert line.frames() == []
    line.publish(SAMSUNG)
    assert line.frames() == [("update", [SAMSUNG])]


def test_a_renamed_sector_takes_its_followers_along() -> None:
    """They hold the new name, and may give it up; names of two changes are joined."""
    line = Line(SAMSUNG, HYNIX, NAVER)
    line.say(op="subscribe", keys=["sector:chips"])
    line.frames()
    line.relist(table(logic=[SAMSUNG, HYNIX], media=[NAVER]))
    line.relist(table(semiconductors=[SAMSUNG, HYNIX], media=[NAVER]))
    [told] = line.frames()
    assert told[:2] == ("members", {"sector:semiconductors": [HYNIX, SAMSUNG]})
    assert told[2]["sector:chips"] == "sector:semiconductors"
    assert line.say(op="list")["accepted"] == ["sector:semiconductors"]
    line.publish(SAMSUNG, NAVER)
    assert line.frames() == [("update", [SAMSUNG])]
    ack = line.say(op="unsubscribe", keys=["sector:semiconductors"])
    assert ack["count"] == 0


def test_a_sector_that_was_split_stays_without_instruments() -> None:
    """And has them again when the name comes back."""
    line = Line(SAMSUNG, HYNIX)
    line.say(op="subscribe", keys=["sector:chips"])
    line.frames()
    line.relist(table(memory=[HYNIX], logic=[SAMSUNG]))
    assert line.frames() == [("members", {"sector:chips": []}, {})]
    line.publish(SAMSUNG, HYNIX)
    assert line.frames() == []
    line.relist(CHIPS)
    assert line.frames() == [
        ("members", {"sector:chips": [HYNIX, SAMSUNG]}, {}),
        ("snapshot", [HYNIX, SAMSUNG]),
    ]


def test_a_market_may_be_asked_for_before_the_table_is_there() -> None:
    """Its instruments come when the table does; a name that is none then has none."""
    line = Line(SAMSUNG, instruments=Instruments())
    ack = line.say(op="subscribe", keys=["market:KOSPI", "market:X"])
    assert ack["members"] == {"market:KOSPI": [], "market:X": []}
    assert line.frames() == [("snapshot", [])]
    line.relist(CHIPS)
    members = {"market:KOSPI": sorted([SAMSUNG, HYNIX, NAVER])}
    assert line.frames() == [("members", members, {}), ("snapshot", [SAMSUNG])]
    [rejection] = line.say(op="subscribe", keys=["market:Y"])["rejected"]
    assert (rejection["code"], rejection["message"]) == (
        "unknown_key",
        "the market of no instrument",
    )


def test_whoever_comes_back_gets_what_changed_if_the_table_is_the_same() -> None:
    """Under another table nobody knows what the client has: it gets all."""
    for digest, expected in ((CHIPS.digest, [SAMSUNG]), (None, [HYNIX, SAMSUNG])):
        line = Line(SAMSUNG, HYNIX, NAVER)
        line.publish(SAMSUNG, NAVER)
        since = {"epoch": EPOCH, "offset": 1, "instruments": digest}
        ack = line.say(op="subscribe", keys=["sector:chips", NAVER], since=since)
        assert ack["resumed"] is True
        [(_, shown)] = line.frames()
        assert sorted(shown) == sorted([*expected, NAVER])
    bad = line.say(op="subscribe", keys=[NAVER], since={**since, "instruments": 7})
    assert (bad["code"], bad["message"]) == (
        "bad_request",
        "since.instruments: must be text",
    )


def test_whoever_watches_everything_is_told_of_its_markets_too() -> None:
    """Without another snapshot: it has every instrument."""
    line = Line(SAMSUNG, HYNIX)
    line.say(op="subscribe", keys=["*", "sector:chips"])
    line.frames()
    line.relist(table(chips=[SAMSUNG], media=[HYNIX]))
    assert line.frames() == [("members", {"sector:chips": [SAMSUNG]}, {})]
    line.publish(SAMSUNG, HYNIX)
    assert line.frames() == [("update", [HYNIX, SAMSUNG])]


class _Follower:
    """What a client makes of frames, by the protocol's page alone."""

    def __init__(self) -> None:
        self.keys: set[str] = set()
        self.members: dict[str, set[str]] = {}
        self.prices: dict[str, int] = {}

    def answered(self, ack: dict[str, Any]) -> None:
        for key in ack["accepted"]:
            if ack["op"] == "subscribe":
                self.keys.add(key)
            else:
                self.keys.discard(key)
                self.members.pop(key, None)
        self.members.update(
            {key: set(isins) for key, isins in ack.get("members", {}).items()}
        )
        self.forget()

    def take(self, frame: dict[str, Any]) -> None:
        if frame["type"] == "members":
            for old, new in frame["renamed"].items():
                if old in self.keys:
                    self.keys.remove(old)
                    self.keys.add(new)
                    self.members[new] = self.members.pop(old, set())
            for key, isins in frame["members"].items():
                self.members[key] = set(isins)
            self.forget()
            return
        for item in frame["data"]:
            assert item["isin"] in self.wanted(), frame
            assert item["seq"] >= self.prices.get(item["isin"], 0), "went back"
            self.prices[item["isin"]] = item["seq"]

    def wanted(self) -> set[str]:
        names = {key for key in self.keys if ":" not in key}
        return names.union(*(self.members.get(key, set()) for key in self.keys))

    def forget(self) -> None:
        wanted = self.wanted()
        self.prices = {i: seq for i, seq in self.prices.items() if i in wanted}


ISINS = make_isins(6)
NAMES = ["a", "b", "c"]
_TABLES = st.lists(
    st.sampled_from([None, *NAMES]), min_size=len(ISINS), max_size=len(ISINS)
)
_KEYS = st.sampled_from([*ISINS[:2], "market:KOSPI", *(f"sector:{n}" for n in NAMES)])
_STEPS = st.one_of(
    st.tuples(st.just("relist"), _TABLES),
    st.tuples(st.just("publish"), st.sets(st.sampled_from(ISINS))),
    st.tuples(st.just("subscribe"), st.sets(_KEYS, min_size=1)),
    st.tuples(st.just("unsubscribe"), st.sets(_KEYS, min_size=1)),
    st.tuples(st.just("read"), st.integers(1, 3)),
)


@settings(max_examples=many(150))
@given(st.lists(_STEPS, max_size=40))
def test_whatever_happens_the_client_has_what_its_keys_stand_for(
    steps: list[tuple[str, Any]],
) -> None:
    """However the table changes, and however slowly the client reads."""
    line, follower = Line(instruments=_listed([None] * len(ISINS))), _Follower()
    newest: dict[str, int] = defaultdict(int)
    for step, what in [*steps, ("read", 1_000)]:
        if step == "relist":
            line.relist(_listed(what))
        elif step == "publish":
            seq = line.board.position.offset + 1
            line.publish(*sorted(what))
            newest.update(dict.fromkeys(what, seq))
        elif step == "read":
            _read(line.commands, follower, what)
        else:
            # A client knows its keys by what it has read.
            _read(line.commands, follower, 1_000)
            follower.answered(line.say(op=step, keys=sorted(what)))
    held = set(line.say(op="list")["accepted"])
    assert follower.keys == held
    wanted = set(line.key_sets.expand(held))
    assert follower.wanted() == wanted
    assert follower.prices == {i: newest[i] for i in wanted if newest[i]}


def _listed(names: list[str | None]) -> Instruments:
    pairs = zip(ISINS, names, strict=True)
    return Instruments(
        InstrumentEntry(i, market="KOSPI", sector=name) for i, name in pairs
    )


def _read(commands: ClientCommands, follower: _Follower, most: int) -> None:
    for _ in range(most):
        frame = commands.delivery.next_frame()
        if frame is None:
            return
        follower.take(json.loads(frame))


def test_nobody_keeps_the_key_sets_of_old_tables() -> None:
    """However often the table changes."""
    line = Line(SAMSUNG)
    others = [make_commands(Board(), line.key_sets) for _ in range(5)]
    for commands in (line.commands, *others):
        say(commands, op="subscribe", keys=["sector:chips"])
    assert len(line.key_sets) == 1
    for turn in range(20):
        line.relist(CHIPS if turn % 2 else table(chips=[NAVER]))
        for commands in (line.commands, *others):
            commands.delivery.take_in()
        assert len(line.key_sets) == 1
    for commands in (line.commands, *others):
        say(commands, op="unsubscribe", keys=["sector:chips"])
    assert len(line.key_sets) == 0
