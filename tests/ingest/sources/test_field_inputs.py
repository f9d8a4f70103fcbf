"""Records as people have them: what their fields become, and what is refused."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ingest.instrument_table.instrument_list import read_instruments
from ingest.sources.event import Refusals
from ingest.sources.tape import PipeError, PipeOptions, read_pipe
from ingest.sources.trade_lines import LineReader
from ingest.trade import Trade
from tests.conftest import input_file
from tickthrottle_client.key_v1 import SymbolKeys, key_of

APPLE, SAMSUNG = "US0378331005", "KR7005930003"
NOW_US = 1_795_593_600_000_000
TAQ = "isin=SYM_ROOT,size=SIZE,price=PRICE,seq=TR_SEQNUM,date=DATE,time=TIME_M"
AGG_TRADES = "seq=agg_trade_id,size=quantity,time=transact_time"


def ingest(
    path: Path, instruments: str = "", is_whole: bool = True, **options: Any
) -> tuple[list[Trade], Refusals]:
    """Return what ``tickthrottle ingest`` takes of a file, and what it refuses."""
    chosen = PipeOptions.model_validate(options)
    keys = None if chosen.venue is None else SymbolKeys(chosen.venue)
    known = (
        read_instruments(input_file(f"b/list_{instruments}.csv"), keys)
        if instruments
        else None
    )
    refusals = Refusals()
    reader = LineReader(
        *(chosen, NOW_US, lambda: NOW_US, known),
        unknown=refusals.unknown_conditions,
        is_whole=is_whole,
    )
    entries = [e for some in read_pipe(path, reader, refusals) for e in some]
    return [Trade.from_wire(payload) for _, payload in entries], refusals


def lines(tmp_path: Path, *rows: str) -> Path:
    """Write a source."""
    path = tmp_path / "rows"
    path.write_text("\n".join(rows))
    return path


def refused(path: Path, **options: Any) -> str:
    """Return what is said of a file of which nothing is taken."""
    with pytest.raises(PipeError) as caught:
        ingest(path, **options)
    return str(caught.value)


def test_rows_with_a_correction_or_a_condition_set_no_price() -> None:
    trades, refusals = ingest(
        input_file("b/b06_polygon_flat.csv"),
        instruments="us",
        map="isin=ticker,time=sip_timestamp,seq=sequence_number",
        time_unit="ns",
        leave_out=["correction", "conditions~2|52"],
    )
    assert [trade.price for trade in trades] == ["230.1500", "230.2"]
    assert max(trades, key=lambda t: t.version).price == "230.2"
    assert refusals.left_out == {"correction": 1, "conditions~2|52": 1}
    assert refusals.total == 0


POLYGON = {
    "instruments": "us",
    "map": "isin=ticker,time=sip_timestamp,seq=sequence_number",
    "time_unit": "ns",
    "leave_out": ["correction"],
}


def test_sale_conditions_say_what_a_trade_counts_for() -> None:
    """Nothing is lost: odd lots and average prices are there with their volume."""
    path = input_file("b/b06_polygon_flat.csv")
    trades, _ = ingest(path, updates="us_equities_numeric:conditions", **POLYGON)
    assert [(t.price, t.extra.get("updates")) for t in trades] == [
        ("230.1500", "volume"),
        ("230.2", None),
        ("150", "volume"),
    ]
    assert [t.extra["conditions"] for t in trades] == ["12,37", "", "2,52"]


def test_letters_go_by_the_tape_and_names_by_the_map(tmp_path: Path) -> None:
    row = '{"S":"AAPL","p":%s,"s":1,"t":1795617000000000,"d":{"c":%s},"z":%s}'
    path = lines(
        tmp_path,
        row % (1, '["B"]', '"A"'),
        row % (2, '["B"]', "3"),
        row % (3, '["B"]', '"Q"'),
        row % (4, "[]", '"Q"'),
    )
    names = "isin=S,price=p,size=s,time=t"
    for more, choice in (
        ("", "us_equities:d.c:z"),
        (",conditions=d.c,tape=z", "us_equities"),
        (",codes=d.c", "us_equities:d.c:z"),
    ):
        trades, refusals = ingest(
            path, instruments="us", map=names + more, updates=choice
        )
        told = [(t.price, t.extra.get("updates")) for t in trades]
        assert told == [("1", "volume"), ("2", None), ("4", None)]
        assert refusals.counts == {"bad_field": 1}
        field = "tape" if choice == "us_equities" else "z"
        assert (
            f"{field} 'Q': must be a tape of the table us_equities: one of 1, 2"
            in (refusals.examples[0])
        )
        assert f"--updates {choice} names the table" in refusals.examples[0]


@pytest.mark.parametrize(
    ("header", "options", "rule"),
    [
        ("c,tape", {}, "no column 'conditions', the sale conditions of --updates us_"),
        (
            "conditions,z",
            {},
            "no column 'tape', by which codes differ: --updates us_equities:conditions:"
            "COLUMN names it, --form set=tape=C is for all lines",
        ),
        (
            "conditions,tape",
            {"updates": "us_equities:::x"},
            "no column 'x', the market of --updates us_equities:::x",
        ),
    ],
)
def test_a_column_that_the_table_needs_is_asked_for(
    header: str, options: dict[str, str], rule: str, tmp_path: Path
) -> None:
    path = lines(
        tmp_path, f"isin,time,seq,price,size,{header}", f"{SAMSUNG},{NOW_US},1,1,1,T,A"
    )
    assert rule in refused(path, **{"updates": "us_equities", **options})


def test_one_tape_may_be_that_of_all_lines(tmp_path: Path) -> None:
    """And a file is whole: its first trade of the day may be out of sequence."""
    row = f"{SAMSUNG},{NOW_US},%d,1,1,%s"
    header = "isin,time,seq,price,size,conditions"
    path = lines(tmp_path, header, *(row % (n, "@Z") for n in (1, 2)), row % (3, "x"))
    options = {"updates": "us_equities", "set": "tape=C"}
    trades, refusals = ingest(path, is_whole=True, **options)
    assert [t.extra.get("updates") for t in trades] == [None, "range,volume", "volume"]
    assert refusals.unknown_conditions == {"x": 1}
    trades, _ = ingest(path, is_whole=False, **options)
    assert [t.extra["updates"] for t in trades] == ["range,volume"] * 2 + ["volume"]


def test_a_field_updates_is_taken_as_it_is_and_an_empty_one_is_none(
    tmp_path: Path,
) -> None:
    row = f"{SAMSUNG},{NOW_US},1,1,1,"
    path = lines(
        tmp_path,
        "isin,time,seq,price,size,updates",
        *(row + text for text in ("", " ", '"volume,range"', "none", "high")),
    )
    trades, refusals = ingest(path)
    assert [t.extra.get("updates") for t in trades] == [
        *(None, None, "volume,range", "none")
    ]
    assert "updates 'high': must name what the trade counts for" in refusals.examples[0]
    head = f'{{"isin":"{SAMSUNG}","time":{NOW_US},"seq":1,"price":"1","size":"1"'
    path = lines(tmp_path, head + ',"updates":null}', head + ',"updates":"low"}')
    [trade], refusals = ingest(path)
    assert trade.extra == {}
    assert refusals.counts == {"bad_field": 1}


def test_a_source_of_which_all_is_left_out_is_no_fault(tmp_path: Path) -> None:
    path = lines(tmp_path, "isin,time,seq,price,size", f"{SAMSUNG},{NOW_US},1,1,0")
    trades, refusals = ingest(path, leave_out=["size=0"])
    assert trades == []
    assert refusals.left_out == Counter({"size=0": 1})


def test_a_date_and_a_time_may_be_two_columns() -> None:
    trades, refusals = ingest(
        input_file("b/b17_taq.csv"),
        instruments="us",
        map=TAQ,
        time_zone="America/New_York",
        leave_out=["TR_CORR"],
    )
    [trade] = trades
    assert trade.time_us == 1_795_617_000_000_123
    assert "DATE" not in trade.extra
    assert "date" not in trade.extra
    assert refusals.left_out == {"TR_CORR": 1}


def test_a_time_without_its_date_is_said_to_be_one() -> None:
    said = refused(
        input_file("b/b17_taq.csv"), instruments="us", map=TAQ.replace("date=DATE,", "")
    )
    assert "is a time of day without a date: --map date=COLUMN" in said


@pytest.mark.parametrize("name", ["price", "$.px"])
def test_a_date_may_be_that_of_all_lines(name: str, tmp_path: Path) -> None:
    row = f'{{"k":"{SAMSUNG}","{name}":1,"size":1,"seq":1,"time":"090001","d":0}}'
    [trade], _ = ingest(
        lines(tmp_path, row),
        map=f"isin=k,price={name}",
        set="date=2026-11-25",
        time_zone="Asia/Seoul",
    )
    assert trade.time_us == 1_795_564_801_000_000


@pytest.mark.parametrize(
    ("options", "isin"),
    [
        ({"set": "isin=BTCUSDT", "venue": "BINANCE"}, key_of("QN", "BTCUSDT")),
        ({"set": "isin=BTCUSDT", "instruments": "coin"}, "QN1BTCUSDT00"),
        ({"set": f"isin={SAMSUNG}"}, SAMSUNG),
    ],
)
def test_a_file_of_one_instrument_names_it_once(
    options: dict[str, str], isin: str
) -> None:
    """The row that is in microseconds is refused with its unit."""
    trades, refusals = ingest(
        input_file("b/b16b_binance_fut_header_mixed_units.csv"),
        map=AGG_TRADES,
        time_unit="ms",
        **options,
    )
    assert [trade.isin for trade in trades] == [isin, isin]
    assert refusals.counts == {"bad_time": 1}
    assert "line 3" in refusals.examples[0]
    assert "in us it is: --form time-unit=us" in refusals.examples[0]


def test_a_sign_that_means_up_or_down_is_left_out() -> None:
    trades, refusals = ingest(
        input_file("g/g11_kiwoom_flat.jsonl"),
        instruments="kr",
        map="isin=item,price=10,size=15",
        stamp="now",
        unsigned=["price,size"],
    )
    assert [(t.price, t.size) for t in trades] == [
        ("71900", "82"),
        ("72000", "5"),
        ("72000", "5"),
    ]
    assert refusals.total == 0


def test_a_price_below_zero_is_refused_with_the_option() -> None:
    trades, refusals = ingest(input_file("b/b25_negative_zero.csv"))
    assert [trade.price for trade in trades] == ["71900"]
    assert refusals.counts == {"bad_price": 2, "bad_size": 1}
    assert "--form unsigned=price" in refusals.examples[0]


@pytest.mark.parametrize("mapping", ["", "price=price"])
def test_whole_numbers_may_be_written_as_others_write_them(
    mapping: str, tmp_path: Path
) -> None:
    """A line is taken with and without a map that changes nothing."""
    head = f'{{"isin":"{SAMSUNG}","price":1,"size":1,'
    path = lines(
        tmp_path,
        head + '"time":1.795593600e15,"seq":2.0,"book":{"b":[1]},"ids":[1]}',
        head + '"time":"1795593600000000.0","seq":"3.0","ids":[[]]}',
        head + '"time":1795593600000000,"seq":4e0}',
        head + '"time":1795593600000000,"seq":4.5}',
    )
    trades, refusals = ingest(path, **({"map": mapping} if mapping else {}))
    assert [(t.time_us, t.seq) for t in trades] == [(NOW_US, n) for n in (2, 3, 4)]
    assert all(not trade.extra for trade in trades)
    assert refusals.counts == {"bad_seq": 1}


def test_codes_that_are_nearly_right_are_told_which_is_meant() -> None:
    path = input_file("b/b36_code_lost_zeros.csv")
    said = refused(path, instruments="kr")
    assert "unknown_symbol: isin '5930'" in said
    assert "a code without its zeros: '005930' is on the list" in said


def test_a_venue_makes_keys_of_symbols() -> None:
    [trade], refusals = ingest(input_file("g/g03_own_symbols.csv"), venue="OWN")
    assert trade.isin == key_of("QX", "BTC")
    assert trade.extra == {"symbol": "BTC", "venue": "OWN"}
    assert trade.price == "60000.12345678"
    assert refusals.counts == {"bad_price": 1, "bad_size": 1}


def test_without_a_venue_the_option_is_named() -> None:
    said = refused(input_file("g/g03_own_symbols.csv"))
    assert "--venue makes keys of them" in said


def test_a_venue_keeps_isins_and_refuses_slips(tmp_path: Path) -> None:
    path = lines(
        tmp_path,
        "isin,symbol,time,seq,price,size",
        f"{SAMSUNG},x,{NOW_US},1,1,1",
        f"KR7005930004,x,{NOW_US},2,1,1",
        f",BTC-USDT-SWAP,{NOW_US},3,1,1",
        f"005930,,{NOW_US},4,1,1",
    )
    trades, refusals = ingest(path, instruments="kr", venue="XMKT=QM")
    assert [trade.isin for trade in trades] == [
        SAMSUNG,
        key_of("QM", "BTC-USDT-SWAP"),
        SAMSUNG,
    ]
    assert refusals.counts == {"bad_isin": 1}
    assert "check digit is 3" in refusals.examples[0]


def test_with_a_venue_a_column_symbol_is_enough(tmp_path: Path) -> None:
    path = lines(tmp_path, "symbol,time,price,size", f"ES.H27,{NOW_US},1,1")
    [trade], _ = ingest(path, venue="XCME")
    assert trade.isin == key_of("QX", "ES.H27")
    assert "has no column 'isin'" in refused(path)


def test_a_cancel_goes_into_the_log_and_may_be_left_out() -> None:
    """As docs/cancels.md says; a negative size is no way to say it."""
    path = input_file("g/g06_cancel.jsonl")
    trades, refusals = ingest(path)
    assert [trade.price for trade in trades] == ["71900", "99900", ""]
    assert trades[-1].takes_back == 2
    assert refusals.counts == {"bad_size": 1}
    trades, refusals = ingest(path, leave_out=["type=cancel", "size~~-"])
    assert [trade.price for trade in trades] == ["71900", "99900"]
    assert refusals.total == 0
    assert refusals.left_out == {"type=cancel": 1, "size~~-": 1}


def test_a_feed_may_name_what_it_takes_back_in_its_own_words(tmp_path: Path) -> None:
    """A column for cancels, empty where a row is a trade; a wrong name says which."""
    path = lines(
        tmp_path,
        "isin,time,seq,price,size,erroneous_trade_id",
        f"{SAMSUNG},{NOW_US},7,100,1,",
        f"{SAMSUNG},{NOW_US},8,,,7",
    )
    trades, refusals = ingest(path, map="cancels=erroneous_trade_id")
    assert [(trade.seq, trade.takes_back) for trade in trades] == [(7, None), (8, 7)]
    assert refusals.total == 0


@pytest.mark.parametrize(
    ("time", "rule"),
    [
        ("2026-11-01T01:10:00", "comes twice on the clocks of America/New_York"),
        ("2026-03-08 02:30:00", "the clocks of America/New_York leave out"),
    ],
)
def test_a_local_time_is_not_guessed(time: str, rule: str, tmp_path: Path) -> None:
    path = lines(tmp_path, "isin,time,seq,price,size", f"{SAMSUNG},{time},1,1,1")
    assert rule in refused(path, time_zone="America/New_York")


@pytest.mark.parametrize(
    ("fold", "time_us"),
    [("earlier", 1_793_509_800_000_000), ("later", 1_793_513_400_000_000)],
)
@pytest.mark.parametrize("time", ["2026-11-01T01:10:00", "1:10:00"])
def test_a_local_time_that_comes_twice_is_the_one_that_is_meant(
    fold: str, time_us: int, time: str, tmp_path: Path
) -> None:
    path = lines(tmp_path, "isin,time,seq,price,size", f"{SAMSUNG},{time},1,1,1")
    day = {} if "T" in time else {"set": "date=2026-11-01"}
    zone = "America/New_York"
    [trade], _ = ingest(path, fold=fold, time_zone=zone, **day)
    assert trade.time_us == time_us
