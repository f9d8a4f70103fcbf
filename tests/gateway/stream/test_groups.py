"""What a client is sent of groups, beside its instruments and alone."""

from typing import Any

from gateway.admission.tokens import TokenGrant
from gateway.protocol.key_sets import NOTHING, KeySets
from gateway.stream.board import Position
from ingest.instrument_table.instrument_entry import InstrumentEntry
from ingest.instrument_table.known_instruments import Instruments
from tests.gateway.samples import (
    EPOCH,
    HYNIX,
    LISTED,
    NAVER,
    SAMSUNG,
    make_board,
    make_commands,
    make_group,
    make_row,
    make_snapshot,
    make_update,
    offer,
)
from tests.gateway.stream.test_commands import drain, say
from throttle.contract import group
from throttle.contract.group import Group
from tickthrottle_client import tick_v1

KOSPI, CHIPS = "group:market:KOSPI", "group:sector:chips"


class Line:
    """A client, the board that it sees, and the table it knows groups by."""

    def __init__(self, instruments: Instruments = LISTED, **settings: Any) -> None:
        self.board = make_board()
        self.key_sets = KeySets(self.board.numbers)
        self.key_sets.change_instruments(instruments)
        self.commands = make_commands(self.board, self.key_sets, **settings)

    def publish(self, *isins: str, **trades: int) -> bool:
        """Publish trades of instruments and figures of groups."""
        self.put(*isins, **trades)
        return self.commands.delivery.is_owed

    def put(self, *isins: str, **trades: int) -> None:
        """Publish, and let the client's turn come later."""
        seq = self.board.position.offset + 1
        rows = [make_row(isin, seq=seq) for isin in isins]
        groups = [make_named(name, n) for name, n in trades.items()]
        news = self.board.apply(make_snapshot(seq, *rows, groups=groups))
        offer(self.commands.delivery, make_update(self.board, news))

    def subscribe(self, *keys: str, **further: Any) -> dict[str, Any]:
        """Subscribe and return the answer."""
        return say(self.commands, op="subscribe", keys=list(keys), **further)

    def frames(self) -> list[tuple[Any, ...]]:
        """Return what is sent: instruments, and groups with their trades."""
        return [
            (frame["type"], isins_of(frame), groups_of(frame))
            for frame in drain(self.commands)
            if frame["type"] != "members"
        ]


def make_named(name: str, trades: int) -> Group:
    """Return the group of a market, in capitals, or of a sector."""
    kind = "market" if name.isupper() else "sector"
    return make_group(f"{kind}:{name}", trades)


def isins_of(frame: dict[str, Any]) -> list[str]:
    """Return the instruments in a frame."""
    return [item["isin"] for item in frame["data"]]


def groups_of(frame: dict[str, Any]) -> dict[str, int]:
    """Return the groups in a frame and their trades."""
    return {g["group"]: g["trades"] for g in frame.get("groups", [])}


def test_groups_come_with_the_instruments_of_their_window() -> None:
    """In one frame, each in a field of its own; nothing of groups nobody asked for."""
    line = Line()
    assert line.subscribe(NAVER, CHIPS)["accepted"] == [NAVER, CHIPS]
    assert line.frames() == [("snapshot", [], {})]
    line.publish(SAMSUNG, NAVER, KOSPI=5, chips=7)
    assert line.frames() == [("update", [NAVER], {CHIPS: 7})]
    line.publish(NAVER, KOSPI=5)
    assert line.frames() == [("update", [NAVER], {})]
    line.publish(SAMSUNG, chips=8)
    assert line.frames() == [("update", [], {CHIPS: 8})]
    assert not line.publish(SAMSUNG, KOSPI=1)


def test_the_ack_of_a_group_names_no_members() -> None:
    """It is not followed instrument by instrument."""
    ack = Line().subscribe("group:*", KOSPI, "group:market:")
    assert (ack["count"], ack["rejected"]) == (3, [])
    assert "members" not in ack


def test_a_snapshot_has_the_newest_figures() -> None:
    """Of the groups that are asked for, as far as they have any."""
    line = Line()
    line.publish(SAMSUNG, KOSPI=5, chips=7)
    line.publish(KOSPI=6)
    line.subscribe(KOSPI, "group:market:KOSDAQ")
    assert line.frames() == [("snapshot", [], {KOSPI: 6})]
    line.subscribe("group:*", SAMSUNG)
    assert line.frames() == [("snapshot", [SAMSUNG], {KOSPI: 6, CHIPS: 7})]


def test_all_groups_are_one_key() -> None:
    """Also those that nobody had heard of; and each is in a frame once."""
    line = Line()
    line.subscribe("group:*", KOSPI)
    line.frames()
    line.publish(SAMSUNG, KOSPI=1, new=2)
    assert line.frames() == [("update", [], {KOSPI: 1, "group:sector:new": 2})]


def test_everything_is_no_group() -> None:
    """A client of ``*`` gets groups if it asks for them."""
    line = Line()
    line.subscribe("*")
    line.frames()
    line.publish(SAMSUNG, KOSPI=1)
    assert line.frames() == [("update", [SAMSUNG], {})]
    line.subscribe(KOSPI)
    assert line.frames() == [("snapshot", [], {KOSPI: 1})]
    line.publish(HYNIX, KOSPI=2)
    assert line.frames() == [("update", [HYNIX], {KOSPI: 2})]
    say(line.commands, op="unsubscribe", keys=["*"])
    line.publish(HYNIX, KOSPI=3)
    assert line.frames() == [("update", [], {KOSPI: 3})]


def test_whoever_reads_slowly_gets_the_figures_of_the_newest_window() -> None:
    """Not sums: an instrument would count twice."""
    cases: list[tuple[str, ...]] = [(KOSPI, CHIPS), ("*", "group:*")]
    for keys in cases:
        line = Line()
        line.subscribe(*keys)
        line.frames()
        line.put(SAMSUNG, KOSPI=1, chips=5)
        line.put(SAMSUNG, KOSPI=2)
        line.put(KOSPI=3)
        instruments = [SAMSUNG] if "*" in keys else []
        assert line.frames() == [("update", instruments, {KOSPI: 3, CHIPS: 5})]


def test_an_interval_holds_for_groups_too() -> None:
    """One update, with the newest figures."""
    line = Line()
    line.subscribe(KOSPI, min_interval_ms=6_000)
    line.frames()
    shown = []
    for trades in range(1, 7):
        line.publish(KOSPI=trades)
        shown += line.frames()
    assert len(shown) == 2
    assert shown[-1][2][KOSPI] in {4, 5, 6}


def test_whoever_comes_back_gets_the_groups_that_changed() -> None:
    """And those alone; a position that says nothing gets all."""
    line = Line()
    line.publish(KOSPI=1, chips=1)
    line.publish(KOSPI=2)
    since = {"epoch": EPOCH, "offset": 2}
    assert line.subscribe("group:*", since=since)["resumed"] is True
    assert line.frames() == [("snapshot", [], {KOSPI: 2})]
    line.subscribe(CHIPS)
    assert line.frames() == [("snapshot", [], {CHIPS: 1})]


def test_what_is_given_up_does_not_come_any_more() -> None:
    """Not even what was waiting."""
    line = Line()
    line.subscribe("*", KOSPI, CHIPS)
    line.frames()
    line.put(SAMSUNG, KOSPI=1, chips=1)
    line.put(HYNIX, KOSPI=2, chips=2)
    say(line.commands, op="unsubscribe", keys=[CHIPS])
    assert line.frames() == [("update", [SAMSUNG, HYNIX], {KOSPI: 2})]
    line.put(SAMSUNG, KOSPI=3, chips=3)
    line.put(HYNIX)
    say(line.commands, op="unsubscribe", keys=[KOSPI])
    assert line.frames() == [("update", [SAMSUNG, HYNIX], {})]


def test_another_epoch_has_figures_of_its_own() -> None:
    """Those of before are void."""
    line = Line()
    line.subscribe("group:*")
    line.publish(KOSPI=1, chips=1)
    line.frames()
    line.board.replace(Position("new", 1, 2_000), [])
    line.commands.delivery.restart()
    assert line.frames() == [("snapshot", [], {})]


def test_a_renamed_sector_takes_the_followers_of_its_group_along() -> None:
    """They are told, and get what there is under the new name."""
    line = Line()
    line.subscribe(CHIPS, KOSPI)
    line.publish(chips=1, KOSPI=1)
    line.frames()
    line.publish(logic=2)
    entries = [
        InstrumentEntry(i, market="KOSPI", sector="logic") for i in (SAMSUNG, HYNIX)
    ]
    line.commands.delivery.take_in()
    line.key_sets.change_instruments(Instruments([*entries, InstrumentEntry(NAVER)]))
    members, snapshot = drain(line.commands)
    assert members["members"] == {}
    assert members["renamed"] == {CHIPS: "group:sector:logic"}
    assert groups_of(snapshot) == {"group:sector:logic": 2}
    line.publish(chips=3, logic=4)
    assert line.frames() == [("update", [], {"group:sector:logic": 4})]
    assert say(line.commands, op="list")["accepted"] == [KOSPI, "group:sector:logic"]


def test_a_group_of_nothing_is_refused() -> None:
    """The reason is one the client can act on."""
    cases: list[tuple[str, str]] = [
        ("group:market:X", "the group of a market of no instrument"),
        ("group:sector:X", "the group of a sector of no instrument"),
        ("group:KOSPI", "groups are called group:market:NAME"),
        ("group:", "groups are called group:market:NAME"),
        ("group:group:market:KOSPI", "groups are called group:market:NAME"),
    ]
    for key, words in cases:
        [rejection] = Line().subscribe(key)["rejected"]
        assert (rejection["key"], rejection["code"]) == (key, "unknown_key")
        assert rejection["message"].startswith(words)


def test_groups_may_be_asked_for_before_the_table_is_there() -> None:
    """Names that nobody could have are refused all the same."""
    line = Line(Instruments())
    long = "group:sector:" + "x" * 300
    ack = line.subscribe("group:sector:X", long, "group:X", "group:*")
    assert ack["accepted"] == ["group:sector:X", "group:*"]


def test_a_token_allows_groups_by_their_keys() -> None:
    """Or all of them."""
    cases: list[tuple[list[str], list[str]]] = [
        ([KOSPI], [KOSPI]),
        (["group:*"], [KOSPI, CHIPS, "group:*"]),
    ]
    for keys, held in cases:
        line = Line()
        line.commands.admit(TokenGrant(frozenset(keys)), 0.0, 0)
        assert line.subscribe(KOSPI, CHIPS, "group:*", SAMSUNG)["accepted"] == held


def test_clients_of_the_same_keys_share_the_bytes() -> None:
    """With groups, and with everything beside them."""
    board = make_board()
    key_sets = KeySets(board.numbers)
    news = board.apply(make_snapshot(2, make_row(), groups=[make_named("KOSPI", 1)]))
    update = make_update(board, news)
    for keys in ([KOSPI, SAMSUNG], [KOSPI, "*"]):
        one, other = (key_sets.move(NOTHING, keys) for _ in range(2))
        assert one is other
        frame = update.frame(one)
        assert frame is not None
        assert frame is update.frame(other)
        assert b'"groups":[{"group":"group:market:KOSPI",' in frame
    plain = key_sets.move(NOTHING, [SAMSUNG])
    assert b"groups" not in (update.frame(plain) or b"")


def test_clients_call_groups_what_the_throttle_calls_them() -> None:
    """The throttle knows nothing of the protocol, clients nothing of the throttle."""
    assert tick_v1.GROUP == group.GROUP
