"""Rows by position: the items that another client has as objects, in fewer bytes."""

import json
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from gateway.positions.field_sets import MOST_SETS
from gateway.stream.board import Board
from gateway.stream.commands import ClientCommands
from gateway.stream.delivery import NewestUpdate
from ingest.instrument_table.instrument_list import parse_list
from ingest.instrument_table.known_instruments import Instruments
from tests.gateway.asyncapi import check_message
from tests.gateway.samples import (
    HYNIX,
    INSTRUMENT_LIST,
    LISTED,
    NAVER,
    SAMSUNG,
    make_board,
    make_commands,
    make_group,
    make_isins,
    make_row,
    make_snapshot,
    make_update,
)
from throttle.contract.snapshot import Row
from tickthrottle_client.row_positions import RowPositions

DAY = b"!1773964800000,412,91700,18291450000,199900,198700,199000"
OURS = ("fields", "names")


class Reader:
    """A client: what it was sent, as items."""

    def __init__(self, commands: ClientCommands, fields: Sequence[str] = ()) -> None:
        self.commands = commands
        self.fields = [*fields]
        self.positions = RowPositions()
        self.bytes = 0

    def say(self, *keys: str, **options: Any) -> dict[str, Any]:
        """Subscribe and return the answer."""
        if self.fields:
            options["fields"] = self.fields
        text = json.dumps({"op": "subscribe", "keys": keys, **options})
        return self.take(self.commands.answer(text, 0.0, 0))

    def steady(self) -> dict[str, Any] | None:
        """Return what a client that keeps up is sent of the newest update."""
        frame = self.commands.delivery.steady_frame()
        return self.take(frame) if frame else None

    def frames(self) -> list[dict[str, Any]]:
        """Return everything that is due."""
        found = []
        while (frame := self.commands.delivery.next_frame()) is not None:
            found.append(self.take(frame))
        return found

    def take(self, frame: bytes) -> dict[str, Any]:
        """Read a frame that is as it is described."""
        check_message(json.loads(frame))
        self.bytes += len(frame)
        message: dict[str, Any] = json.loads(frame, parse_float=Decimal)
        self.positions.take(message)
        return {name: value for name, value in message.items() if name not in OURS}


class Pair:
    """Two clients of one board, by position and as objects."""

    def __init__(self, board: Board, instruments: Instruments | None = None) -> None:
        self.board = board
        self._instruments = instruments
        self.offset = board.position.offset
        self.connect()

    def connect(self) -> None:
        """Begin anew, with new connections."""
        self.placed, self.plain = (
            Reader(make_commands(self.board, self._instruments), fields)
            for fields in (["*"], [])
        )

    def publish(self, *rows: Row, **options: Any) -> None:
        """Publish a window to both."""
        self.offset += 1
        epoch = self.board.position.epoch or ""
        snapshot = make_snapshot(self.offset, *rows, epoch=epoch, **options)
        update = make_update(self.board, self.board.apply(snapshot))
        for reader in (self.placed, self.plain):
            reader.commands.delivery.newest.put(update)

    def restart(self, epoch: str, isins: Sequence[str]) -> None:
        """Have another epoch begin, in which some instruments have traded."""
        here = self.board.position
        values = [v for isin in isins if (v := self.board.get(isin)) is not None]
        self.board.replace(replace(here, epoch=epoch), values)
        for reader in (self.placed, self.plain):
            reader.commands.delivery.newest.skip()

    def same(self, what: str, *arguments: str, **options: Any) -> Any:
        """Have both do the same, and return what both got."""
        placed, plain = (
            getattr(reader, what)(*arguments, **options)
            for reader in (self.placed, self.plain)
        )
        assert placed == plain
        return placed


def random_rows(chance: Random, isins: Sequence[str], seq: int) -> list[Row]:
    """Return rows of some instruments and series."""
    rows = []
    for isin in chance.sample(isins, chance.randrange(len(isins))):
        extra = {"side": chance.choice("BS")} if chance.random() < 0.7 else {}
        if chance.random() < 0.2:
            extra["updates"] = "range,volume"
        price = chance.choice(("0.30", "199500", "7.25"))
        row = make_row(isin.partition("@")[0], price, seq, 1, **extra)
        row = row._replace(
            isin=isin, body=row.body.replace(row.isin.encode(), isin.encode())
        )
        if chance.random() < 0.4:
            row = row._replace(sums=b"3,120.5,36.15,0.30,0.10")
        if chance.random() < 0.3:
            row = row._replace(day=DAY)
        if chance.random() < 0.2:
            row = row.revised(b"00001" + row.version[5:])
        rows.append(row)
    return rows


@pytest.mark.parametrize("seed", range(40))
def test_rows_are_the_items_of_another_client(seed: int) -> None:
    """Whatever is published, read, asked for and left out, in any order."""
    chance = Random(seed)
    isins = [*make_isins(7), f"{SAMSUNG}@NXT", SAMSUNG]
    pair = Pair(Board())
    pair.board.replace(make_board().position, [])
    pair.offset = pair.board.position.offset
    pair.same("say", *chance.sample(isins, 4))
    for seq in range(1, 40):
        match chance.randrange(9):
            case 0 | 1 | 2 | 3:
                pair.publish(*random_rows(chance, isins, seq))
            case 4:
                pair.same("steady")
            case 5:
                pair.same("frames")
            case 6:
                keys = ["*"] if chance.random() < 0.2 else chance.sample(isins, 3)
                pair.same("say", *keys, snapshot=chance.random() < 0.8)
            case 8:
                pair.restart(f"e{seq}", chance.sample(isins, 4))
            case 7:
                here = pair.board.complete
                since = {
                    "epoch": here.epoch,
                    "offset": chance.randrange(here.offset + 3),
                }
                pair.connect()
                pair.same("say", *chance.sample(isins, 6), since=since)
    pair.same("frames")


def test_a_client_may_change_how_rows_come() -> None:
    """From objects and back: names are told of all that it holds."""
    pair = Pair(make_board(make_row(SAMSUNG), make_row(HYNIX)))
    pair.placed.fields = []
    pair.same("say", SAMSUNG)
    pair.placed.fields = ["*"]
    pair.same("say", HYNIX)
    pair.same("frames")
    pair.publish(make_row(SAMSUNG, seq=2), make_row(HYNIX, seq=2))
    assert len(pair.same("steady")["data"]) == 2
    pair.placed.fields = []
    pair.same("say", NAVER)
    pair.publish(make_row(NAVER, seq=3))
    assert pair.same("frames")[-1]["data"]


def test_groups_and_changed_sectors_come_as_ever() -> None:
    """Those that a table adds are named with it."""
    pair = Pair(make_board(make_row(SAMSUNG), make_row(NAVER)), LISTED)
    pair.same("say", "sector:chips", "group:*")
    pair.same("frames")
    pair.publish(make_row(SAMSUNG, seq=2), groups=[make_group("sector:chips")])
    assert pair.same("steady")["groups"]
    moved = INSTRUMENT_LIST.replace("internet & media", "chips")
    table = Instruments(parse_list(moved.splitlines(keepends=True)).instruments)
    for reader in (pair.placed, pair.plain):
        reader.commands.delivery._key_sets.change_instruments(table)
    assert [m["type"] for m in pair.same("frames")] == ["members", "snapshot"]
    pair.publish(make_row(NAVER, seq=3))
    assert pair.same("steady")["data"][0]["isin"] == NAVER


def test_clients_of_one_set_share_their_bytes() -> None:
    """A frame is built once for equal keys and fields; of others it differs."""
    board = make_board(make_row(SAMSUNG))
    first, second, third = (make_commands(board) for _ in range(3))
    key_sets = first.delivery._key_sets
    for commands in (second, third):
        commands.delivery._key_sets = key_sets
    for commands, fields in ((first, ["*"]), (second, ["*"]), (third, ["price"])):
        object.__setattr__(commands, "_shared", first._shared)
        Reader(commands, fields).say(SAMSUNG)
        while commands.delivery.next_frame():
            pass
    update = make_update(board, board.apply(make_snapshot(2, make_row(SAMSUNG, seq=2))))
    newest: list[NewestUpdate] = [c.delivery.newest for c in (first, second, third)]
    for each in newest:
        each.put(update)
    one, two, other = (c.delivery.steady_frame() for c in (first, second, third))
    assert one is two
    assert other is not None
    assert other.endswith(b'"window":1773964806000,"data":[[0,199500]]}')


def test_a_refusal_names_field_and_rule_and_changes_nothing() -> None:
    """An unknown field, what is no list, and a set too many."""
    board = make_board(make_row(SAMSUNG))
    commands = make_commands(board)
    for fields, code, text in (
        (["prize"], "bad_request", "fields: 'prize': is none of price, "),
        ("price", "bad_request", "fields: must be a list of 1 to 64 names"),
        ([], "bad_request", "fields: must be a list of 1 to 64 names"),
        ([7], "bad_request", "fields: must be a list of 1 to 64 names"),
    ):
        message = {"op": "subscribe", "id": 4, "keys": [SAMSUNG], "fields": fields}
        answer = json.loads(commands.answer(json.dumps(message), 0.0, 0))
        assert (answer["code"], answer["id"]) == (code, 4)
        assert answer["message"].startswith(text)
    assert commands.delivery.keys == ()


def test_sets_are_free_again_when_their_clients_have_gone() -> None:
    """Who takes all of them keeps nobody out who wants all fields."""
    board = make_board(make_row(SAMSUNG))
    first = make_commands(board)
    clients = [first, *(make_commands(board) for _ in range(MOST_SETS))]
    names = ("price", "size", "age", "seq", "time")
    sets = [
        [n for at, n in enumerate(names) if (mask >> at) & 1] for mask in range(1, 32)
    ]
    answers = []
    for commands, fields in zip(clients, sets, strict=False):
        commands._shared = first._shared
        message = {"op": "subscribe", "keys": [SAMSUNG], "fields": fields}
        answers.append(json.loads(commands.answer(json.dumps(message), 0.0, 0)))
    *granted, refused = answers
    assert {answer["type"] for answer in granted} == {"ack"}
    assert refused["code"] == "field_limit"
    last = clients[-1]
    assert Reader(last, ["*"]).say(SAMSUNG)["type"] == "ack"
    first.close()
    assert Reader(last, sets[MOST_SETS]).say(SAMSUNG)["type"] == "ack"


def test_an_object_client_gets_what_it_got() -> None:
    """Byte for byte: nothing is named, and no field is new."""
    pair = Pair(make_board(make_row(SAMSUNG, side="B")))
    ack = pair.plain.commands.answer('{"op":"subscribe","keys":["*"]}', 0.0, 0)
    assert ack == (
        b'{"type":"ack","op":"subscribe","accepted":["*"],"rejected":[],"count":1,'
        b'"min_interval_ms":2000,"resumed":false}'
    )
    pair.plain.frames()
    pair.publish(make_row(SAMSUNG, seq=2))
    assert pair.plain.commands.delivery.steady_frame() == (
        b'{"type":"update","epoch":"k3x9","offset":2,"window":1773964806000,"data":['
        b'{"isin":"KR7005930003","time":1773964802000002,"seq":2,"price":199500,'
        b'"size":40,"trades":1}]}'
    )
