"""Frames as people had them, and others of their kinds: what becomes of each."""

import gzip
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis
from structlog.testing import capture_logs

from ingest.adapters.adapter import Adapter, BadChoice
from ingest.exchanges.alpaca import Alpaca
from ingest.exchanges.binance import Binance
from ingest.exchanges.kis import Kis
from ingest.exchanges.upbit import Upbit
from ingest.instrument_table.instrument_entry import InstrumentEntry
from ingest.instrument_table.instrument_list import InstrumentList
from ingest.instrument_table.known_instruments import Instruments
from ingest.instrument_table.redis_instrument_store import RedisInstrumentStore
from ingest.instrument_table.table_loader import read_on, update_table
from tests.conftest import eventually, input_file
from tests.ingest.adapters.feeding import feeding, logged
from tests.ingest.adapters.frames import Deal, kis, kis_fields, upbit
from tickthrottle_client.key_v1 import key_of

pytestmark = pytest.mark.redis

NOW_US = 1_795_593_601_000_000
SAMSUNG = "005930"


class Played:
    """What became of a raw tape."""

    def __init__(
        self, trades: list[dict[str, Any]], logs: Sequence[Any], refused: Any
    ) -> None:
        self.trades = trades
        self.refused = dict(refused)
        self.warnings = [e for e in logs if e["log_level"] == "warning"]
        self.account = next(e for e in logs if "of what came" in e["event"])
        assert logs[-1] is self.account

    def newest(self) -> str:
        """Return the price that the pipeline shows in the end."""
        newest = max(self.trades, key=lambda trade: (trade["time"], trade["seq"]))
        return str(newest["price"])

    def counted(self) -> dict[Any, str]:
        """Return what each trade counts for that does not count for everything."""
        partial = (t for t in self.trades if "updates" in t)
        return {t.get("trade_id", t["seq"]): t["updates"] for t in partial}

    def last(self) -> str:
        """Return the price of the newest trade that counts for it."""
        counting = [t for t in self.trades if "last" in t.get("updates", "last")]
        newest = max(counting, key=lambda trade: (trade["time"], trade["seq"]))
        return str(newest["price"])

    def said(self, words: str) -> list[str]:
        told = [f"{e['event']} {e}" for e in self.warnings]
        return [line for line in told if words in line]


class Player:
    """Plays raw tapes into a real log."""

    def __init__(self, redis_url: str, client: redis.Redis, folder: Path) -> None:
        self._url = redis_url
        self._client = client
        self._folder = folder
        self.table = RedisInstrumentStore(client, "test")

    def play(self, kind: type[Adapter], tape: str | Path, **options: Any) -> Played:
        """Play a tape, or one of the inputs by its name."""
        path = input_file(tape) if isinstance(tape, str) else tape
        with (
            capture_logs() as logs,
            feeding(self._url, kind, replay_raw=path, **options) as running,
        ):
            eventually(running.ended)
        report = running.report
        # In the order of arrival: the log has several partitions.
        trades = sorted(logged(self._client), key=lambda t: (t["time"], t["seq"]))
        return Played(trades, logs, report.refused)

    def play_frames(
        self, kind: type[Adapter], recorded: str, *frames: str | bytes, **options: Any
    ) -> Played:
        """Play frames a millisecond apart, of a symbol as the tape has it."""
        opened = {"at": NOW_US, "on": 0, "open": kind.name, "symbols": [recorded]}
        lines: list[dict[str, Any]] = [opened]
        for place, frame in enumerate(frames):
            text = frame if isinstance(frame, str) else frame.decode()
            lines.append({"at": NOW_US + 1_000 * place, "on": 0, "text": text})
        path = self._folder / "own.raw.gz"
        path.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
        return self.play(kind, path, **options)

    def instrument(self, isin: str) -> Any:
        """Return what the instrument table has of an instrument."""
        return read_on(self.table, Instruments())[0].get(isin)


@pytest.fixture
def player(redis_url: str, client: redis.Redis, tmp_path: Path) -> Player:
    return Player(redis_url, client, tmp_path)


A = "a/a{}.raw.gz".format


INPUTS = (
    (Kis, "01_kis_47_fields", 3, 0),
    (Kis, "02_kis_several_in_frame", 3, 0),
    (Kis, "04_kis_nxt_union", 0, 0),
    (Kis, "06_kis_session_flip", 3, 0),
    (Kis, "07_kis_offhours_and_empty", 3, 1),
    (Kis, "08_kis_negative_price_sign", 1, 1),
    (Kis, "09_kis_errors", 1, 0),
    (Upbit, "10_upbit_binary_simple_list", 2, 1),
    (Upbit, "11_upbit_seqid_same_ms", 2, 0),
    (Upbit, "12_upbit_exponent", 1, 0),
    (Binance, "13_binance_gap_order", 4, 0),
    (Binance, "14_binance_microseconds", 0, 2),
    (Binance, "15_binance_aggtrade_and_zero", 0, 2),
    (Alpaca, "16_alpaca_conditions", 5, 0),
    (Alpaca, "17_alpaca_correction_cancel", 3, 0),
    (Alpaca, "18_alpaca_fraction_size_string_id", 3, 2),
    (Alpaca, "19_alpaca_msgpack_errors", 1, 1),
    (Kis, "21_kis_hour_five_digits", 1, 1),
)


def test_all_of_an_input_is_counted(player: Player, client: redis.Redis) -> None:
    for kind, name, appended, refused in INPUTS:
        client.flushall()
        played = player.play(kind, A(name))
        assert len(played.trades) == appended == played.account["trades"], name
        assert sum(played.refused.values()) == refused, name


def test_frames_of_other_venues_are_told_by_name(player: Player) -> None:
    played = player.play(Kis, A("04_kis_nxt_union"))
    assert played.account["skipped"] == {"H0NXCNT0": 1, "H0UNCNT0": 1}
    words = "kis: frames of H0NXCNT0 come and are not taken, trades of NXT: ask for "
    assert len(played.said(words + "005930@NXT")) == 1
    assert len(played.said("kis: frames of H0UNCNT0")) == 1
    assert len(played.said("nothing is taken of what comes")) == 1


def test_of_equal_times_the_last_to_come_is_the_newest(player: Player) -> None:
    played = player.play(Upbit, A("11_upbit_seqid_same_ms"), symbols="krw-btc")
    assert played.newest() == "200"
    assert [t["trade_id"] for t in played.trades] == [17641200009, 17641200003]
    assert played.trades[0]["symbol"] == "KRW-BTC"


def test_sale_conditions_say_which_trade_is_the_last_price(player: Player) -> None:
    """All of them are there; average price, odd lot and late ones set none."""
    played = player.play(Alpaca, A("16_alpaca_conditions"))
    assert played.counted() == {2: "volume", 3: "volume", 4: "volume", 5: "volume"}
    assert played.last() == "230.15"
    assert "unknown_conditions" not in played.account


def test_a_letter_means_something_else_on_another_tape(
    player: Player, tmp_path: Path
) -> None:
    """On tape A ``B`` is an average price by the plan itself."""
    text = gzip.decompress(input_file(A("16_alpaca_conditions")).read_bytes())
    tape = tmp_path / "tape_a.raw.gz"
    tape.write_bytes(gzip.compress(text.replace(rb'"z\": \"C', rb'"z\": \"A')))
    played = player.play(Alpaca, tape)
    assert played.counted() == {2: "volume", 3: "volume", 4: "volume", 5: "volume"}
    assert played.last() == "230.15"


def alpaca_trade(number: int, price: int, codes: str, tape: str = "C") -> str:
    """Return a frame with a trade, a second after the one before."""
    return (
        f'[{{"T":"t","S":"AAPL","i":{number},"x":"V","p":{price},"s":100,"c":{codes},'
        f'"t":"2026-11-25T15:00:{number:02}Z","z":"{tape}"}}]'
    )


def test_what_a_table_does_not_have_moves_no_price_and_is_told_once(
    player: Player,
) -> None:
    frames = [
        alpaca_trade(1, 230, '["@"]'),
        *(alpaca_trade(n, 999, '["@","?"]') for n in (2, 3)),
        alpaca_trade(4, 999, '["@"]', "O"),
        alpaca_trade(5, 999, "[]", "O").replace("999", "231"),
    ]
    played = player.play_frames(Alpaca, "AAPL", *frames)
    assert played.counted() == {2: "volume", 3: "volume", 4: "volume"}
    assert played.last() == "231"
    unknown = {"?": 2, "@ of no known tape": 1}
    assert played.account["unknown_conditions"] == unknown
    for name in unknown:
        assert len(played.said(f"alpaca: unknown sale condition {name}: its")) == 1


def test_a_table_of_the_user_s_takes_the_place_of_ours(
    player: Player, tmp_path: Path
) -> None:
    own = tmp_path / "own.csv"
    own.write_text("code,last,range,volume\nT,yes,yes,yes\n*,no,no,no\n")
    played = player.play(Alpaca, A("16_alpaca_conditions"), updates=str(own))
    assert set(played.counted().values()) == {"none"}


def test_a_block_of_krx_is_no_price(player: Player) -> None:
    """Its record says so; a trade after hours is one of its session."""
    records = [row(volume, price=str(volume)) for volume in (10, 20, 30, 40)]
    for record, operation in zip(records, ("20", "22", "40", ""), strict=True):
        record[34] = operation
    played = player.play_frames(Kis, SAMSUNG, *map(kis, records))
    assert [t.get("updates") for t in played.trades] == [None, "volume", None, None]


def test_a_table_that_cannot_be_used_ends_the_feed(redis_url: str) -> None:
    class Own(Alpaca):
        conditions = "none"

    tape = input_file(A("16_alpaca_conditions"))
    with feeding(redis_url, Own, replay_raw=tape) as running:
        eventually(running.ended)
    [error] = running.errors
    assert isinstance(error, BadChoice)
    assert str(error).startswith("feed alpaca: conditions 'none': is no table; there")


def test_a_cancel_and_a_correction_take_the_trade_back(player: Player) -> None:
    """The correction comes after the cancel: it is all that stands."""
    played = player.play(Alpaca, A("17_alpaca_correction_cancel"))
    of = {str(t.get("price")): t for t in played.trades}
    trade, cancel, correction = of["999.0"], of["None"], of["230.2"]
    assert cancel["cancels"] == trade["seq"]
    assert (trade["trade_id"], correction["trade_id"]) == (10, 11)
    assert (correction["time"], correction["seq"]) == (trade["time"], trade["seq"])
    assert played.account["skipped"] == {}


def test_what_is_taken_back_after_midnight_utc_is_of_the_same_session(
    player: Player,
) -> None:
    """A cancel and a correction of trades of the evening in New York."""
    of = {"S": "AAPL", "x": "V"}
    trade = {"T": "t", **of, "p": 230.1, "s": 100, "t": "2026-11-25T23:59:59Z"}
    later = {**of, "t": "2026-11-26T00:10:00Z"}
    rows = [
        *({**trade, "i": n} for n in (1, 2)),
        {"T": "x", **later, "i": 1, "a": "E"},
        {"T": "c", **later, "oi": 2, "ci": 3, "cp": 230.25, "cs": 10, "cc": ["@"]},
    ]
    played = player.play_frames(Alpaca, "AAPL", json.dumps(rows))
    numbers = {t["trade_id"]: t["seq"] for t in played.trades if "price" in t}
    [cancel] = (t for t in played.trades if "price" not in t)
    [correction] = (t for t in played.trades if "corrects" in t)
    assert (cancel["cancels"], correction["corrects"]) == (numbers[1], numbers[2])
    assert (played.account["skipped"], played.refused) == ({}, {})


def test_the_previous_close_of_upbit_gets_into_the_table(
    player: Player, tmp_path: Path
) -> None:
    script = input_file("g/g20_upbit_live.raw.py")
    tape = tmp_path / "g20.raw.gz"
    subprocess.run([sys.executable, str(script), str(tape)], check=True, timeout=60)
    assert len(player.play(Upbit, tape).trades) == 3
    instrument = player.instrument(key_of("QU", "KRW-BTC"))
    assert (instrument.prev_close, instrument.name) == ("70000000", "KRW-BTC")


def test_a_feed_leaves_what_an_operator_loaded(player: Player) -> None:
    """Name, market, close: the feed knows none of them by a list."""
    loaded = InstrumentEntry(
        "KR7005930003", name="삼성전자", market="KOSPI", prev_close="71500"
    )
    update_table(player.table, InstrumentList([loaded]))
    player.play(Kis, A("02_kis_several_in_frame"))
    instrument = player.instrument("KR7005930003")
    assert instrument == replace(loaded, code="005930")
    assert player.instrument("KR7000660001").name == "000660"


# Others of each kind.


def row(volume: int, *, price: str = "71900", hour: str = "094751") -> list[str]:
    return kis_fields(Deal(SAMSUNG, 0, price, "10"), volume, hour=hour)


def test_a_bad_list_item_of_upbit_and_a_short_record_of_kis_cost_themselves(
    player: Player,
) -> None:
    good = [upbit(Deal("KRW-BTC", n)).decode() for n in (1, 2)]
    odd = '{"ty":"trade","cd":"KRW-BTC","ttms":"soon"}'
    frame = f"[{good[0]},17,{odd},null,{good[1]}]"
    played = player.play_frames(Upbit, "KRW-BTC", frame)
    assert [t["trade_id"] for t in played.trades] == [1, 2]
    assert played.refused == {"not_object": 2, "bad_field": 1}

    short = row(20)
    del short[44]
    played = player.play_frames(Kis, SAMSUNG, kis(row(10), short, row(30)))
    assert [t["seq"] for t in played.trades if "cum_volume" in t] == [10, 30]
    assert played.refused == {"not_decoded": 1}


def test_symbols_as_others_write_them_are_taken(player: Player) -> None:
    """In the option, and on a tape that was recorded with them."""
    typed, frame = "BTC/KRW", upbit(Deal("KRW-BTC", 1))
    assert len(player.play_frames(Upbit, typed, frame).trades) == 1
    assert len(player.play_frames(Upbit, "X", frame, symbols=typed).trades) == 2


def test_the_day_of_kis_gets_into_the_table_and_a_halt_ends(player: Player) -> None:
    halted, again = row(10), row(20)
    for fields, flag in ((halted, "Y"), (again, "N")):
        fields[3:5], fields[35] = ["5", "-100"], flag
    player.play_frames(Kis, SAMSUNG, kis(halted))
    instrument = player.instrument("KR7005930003")
    assert (instrument.prev_close, instrument.status) == ("72000", "halted")
    player.play_frames(Kis, SAMSUNG, kis(again))
    assert player.instrument("KR7005930003").status is None
