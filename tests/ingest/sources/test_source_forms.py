"""Files as people have them: what is taken of each, as a pipe and as a tape."""

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from ingest.instrument_table.instrument_list import read_instruments
from ingest.sources.event import Refusals
from ingest.sources.tape import PipeError, TapeError, read_pipe, read_tape
from ingest.sources.trade_lines import LineOptions, LineReader
from ingest.trade import Trade
from tests.conftest import input_file

SEOUL = {"time_zone": "Asia/Seoul", "instruments": "b/list_kr.csv"}
KRX = {
    "map": "isin=종목코드,price=체결가,size=거래량,time=체결시각",
    "thousands": ",",
    **SEOUL,
}
POLYGON = {
    "map": "isin=sym,price=p,size=s,time=t,seq=q",
    "time_unit": "ms",
    "instruments": "b/list_us.csv",
}
POLYGON_FLAT = {
    "map": "isin=ticker,time=sip_timestamp,seq=sequence_number",
    "time_unit": "ns",
    "leave_out": ["correction", "conditions~12|37|52"],
    "instruments": "b/list_us.csv",
}
BINANCE = {
    "map": "seq=agg_trade_id,size=quantity,time=transact_time",
    "time_unit": "ms",
    "set": "isin=BTCUSDT",
    "venue": "BINANCE",
}
TAQ = {
    "map": "isin=SYM_ROOT,size=SIZE,price=PRICE,seq=TR_SEQNUM,date=DATE,time=TIME_M",
    "time_zone": "America/New_York",
    "instruments": "b/list_us.csv",
}
NOW_US = 1_795_593_601_000_000


def read(path: Path, options: Mapping[str, Any]) -> tuple[list[Trade], Refusals]:
    """Read a file as ``ingest`` does, and as ``replay`` does: there is no difference.

    Raises PipeError.
    """
    chosen = dict(options)
    listed = chosen.pop("instruments", None)
    instruments = None if listed is None else read_instruments(input_file(listed))
    lines = LineOptions(**chosen)
    refusals, again = Refusals(), Refusals()
    reader = LineReader(lines, 1, lambda: NOW_US, instruments)
    parts = read_pipe(path, reader, refusals)
    try:
        trades = [Trade.from_wire(payload) for part in parts for _, payload in part]
    except PipeError:
        with pytest.raises(TapeError):
            list(read_tape(path, again, lines, instruments))
        raise
    if lines.stamp != "now":
        assert list(read_tape(path, again, lines, instruments)) == trades
        assert again == refusals
    return trades, refusals


@pytest.mark.parametrize(
    ("name", "options", "trades", "refused"),
    [
        ("b/b01_krx_cp949.csv", {"encoding": "cp949", **KRX}, 2, 0),
        ("b/b02_krx_utf8_thousands.csv", KRX, 2, 0),
        ("b/b03_bom_crlf.csv", {}, 2, 0),
        ("b/b06_polygon_flat.csv", POLYGON_FLAT, 1, 0),
        ("b/b16b_binance_fut_header_mixed_units.csv", BINANCE, 2, 1),
        ("b/b17_taq.csv", TAQ, 2, 0),
        ("g/g03_own_symbols.csv", {"venue": "XMKT"}, 1, 2),
        ("b/b04_tabs.tsv", {"delimiter": "tab"}, 2, 0),
        ("b/b07_float_epoch_s.csv", {"time_unit": "s"}, 2, 0),
        ("b/b09_empty_lines.csv", {}, 2, 0),
        ("b/b10_header_again.csv", {}, 4, 1),
        ("b/b08_pandas_floats.csv", {"time_unit": "ms"}, 2, 0),
        ("b/b11_trailing_comma.csv", {}, 1, 0),
        ("b/b11b_trailing_comma_rows_only.csv", {}, 2, 0),
        ("b/b12_gzip_members.csv.gz", {}, 4, 1),
        ("b/b12b_gzip_trailing_zeros.csv.gz", {}, 2, 0),
        ("b/b13.csv.zst", {}, 1, 0),
        ("b/b14.parquet", {}, 1, 0),
        ("b/b19_utf16.csv", {"encoding": "utf-16"}, 2, 0),
        ("b/b21_quoted_newline.csv", {}, 3, 0),
        ("b/b22_upper_header.csv", {}, 1, 0),
        ("b/b23_spaces_after_comma.csv", {}, 1, 0),
        ("b/b24_json_array.json", {}, 1, 0),
        ("b/b24c_json_nan.jsonl", {}, 2, 0),
        ("b/b25_negative_zero.csv", {}, 1, 3),
        ("b/b31_comment_lines.csv", {}, 1, 0),
        ("b/b32_nul_tail.csv", {}, 2, 1),
        ("b/b39_no_newline_at_end.jsonl", {}, 1, 0),
        ("b/b51_cp949_text_column.csv", {}, 1, 1),
        ("b/b51_cp949_text_column.csv", {"encoding": "cp949"}, 2, 0),
        ("b/b52_crlf_gz_second_header_bom.csv", {}, 2, 1),
        ("g/g01_polygon_ws.jsonl", POLYGON, 2, 1),
        ("g/g08_csv_injection.csv", {}, 2, 0),
    ],
)
def test_a_file_gives_its_trades(
    name: str, options: Mapping[str, Any], trades: int, refused: int
) -> None:
    """And everything else is counted."""
    came, refusals = read(input_file(name), options)
    assert (len(came), refusals.total) == (trades, refused)
    assert all(trade.price not in ("1", "719") for trade in came)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("b/b01_krx_cp949.csv", "is not UTF-8: --form encoding=cp949 perhaps"),
        (
            "b/b02_krx_utf8_thousands.csv",
            "--map isin=종목코드,time=체결시각,price=체결가,size=거래량 perhaps",
        ),
        ("b/b04_tabs.tsv", "seems to be separated by tabs: --form delimiter=tab"),
        ("b/b12c_gzip_truncated.csv.gz", "gzip damaged after line 2083"),
        ("b/b15_binance.zip", "looks like data, not like a header: --form columns"),
        ("b/b16_binance_aggtrades_noheader.csv", "looks like data"),
        ("b/b19_utf16.csv", "is UTF-16: --form encoding=utf-16"),
        ("b/b20_cr_only.csv", "has old line ends, CR alone: tr"),
        ("b/b24b_json_pretty.json", "is JSON over several lines"),
        ("b/b36_code_lost_zeros.csv", "held no valid trade; line 2: bad_isin"),
        (
            "g/g07_symbol_column_only.csv",
            "it has symbol,timestamp,price,quantity: "
            "--map isin=symbol,time=timestamp,size=quantity perhaps",
        ),
    ],
)
def test_a_file_that_needs_an_option_is_told_which(name: str, words: str) -> None:
    """By what it is."""
    with pytest.raises(PipeError) as caught:
        read(input_file(name), {})
    assert words in str(caught.value)


def test_marks_between_thousands_are_told(tmp_path: Path) -> None:
    """With both options, as nobody can know what the comma means."""
    options = {k: v for k, v in KRX.items() if k != "thousands"}
    with pytest.raises(PipeError, match=r"--form thousands=.* --form decimal-mark"):
        read(input_file("b/b02_krx_utf8_thousands.csv"), options)
    path = tmp_path / "german.csv"
    path.write_text("isin;time;price;size\nKR7005930003;1764028801123456;1.234,5;10\n")
    options = {"delimiter": ";", "thousands": ".", "decimal_mark": ","}
    [trade] = read(path, options)[0]
    assert trade.price == "1234.5"


def test_each_trade_of_a_list_is_for_itself(tmp_path: Path) -> None:
    """A bad one, a status or nothing at all harms no other."""
    path = tmp_path / "frames.jsonl"
    frames: list[Any] = [
        {"topic": "status"},
        {"topic": "t", "ts": 1_764_028_801_123, "data": []},
        {
            "topic": "t",
            "ts": 1_764_028_801_124,
            "data": [
                {"s": "KR7005930003", "p": "0.10", "v": 1, "i": 7},
                {"s": "KR7005930003", "p": "-1", "v": 1, "i": 8},
                7,
                {
                    "s": "KR7005930003",
                    "p": "0.20",
                    "v": 1,
                    "i": 9,
                    "ts": "1764028801125",
                },
            ],
        },
    ]
    path.write_text("\n".join(map(json.dumps, [*frames, frames])))
    names = "isin=s,price=p,size=v,time=ts,seq=i"

    options = {"map": names, "records": "data", "time_unit": "ms"}
    trades, refusals = read(path, options)

    assert [trade.price for trade in trades] == ["0.10", "0.20"] * 2
    assert trades[1].time_us == 1_764_028_801_125_000
    assert refusals.counts == {"missing_field": 2, "bad_price": 2, "not_object": 2}
    assert not trades[0].extra


def test_a_quote_may_be_a_character_like_others(tmp_path: Path) -> None:
    """Where the option says so; otherwise the refusal names it."""
    path = tmp_path / "inches.tsv"
    row = 'KR7005930003\t1764028801123456\t{}\t71900\t10\t"5 inch\n'
    path.write_text(
        "isin\ttime\tseq\tprice\tsize\tmemo\n" + row.format(1) + row.format(2)
    )

    trades, _ = read(path, {"delimiter": "tab", "no_quotes": True})

    assert [trade.extra["memo"] for trade in trades] == ['"5 inch'] * 2
    with pytest.raises(PipeError, match="--form no-quotes takes it"):
        read(path, {"delimiter": "tab"})


def test_spaces_around_the_fields_are_none(tmp_path: Path) -> None:
    """In CSV, in objects and in lists; other values keep theirs."""
    path = tmp_path / "spaces"
    row = {"isin": " KR7005930003", "time": "1764028801123456 ", "seq": " 1"}
    row |= {"price": " 71900", "size": "10 ", "memo": " m "}
    in_csv = ",".join(row) + "\n" + ",".join(row.values())
    for text in (in_csv, json.dumps(row), json.dumps([row])):
        path.write_text(text + "\n")
        [trade] = read(path, {})[0]
        assert (trade.price, trade.seq, trade.extra) == ("71900", 1, {"memo": " m "})


def test_columns_are_named_where_there_is_no_header(tmp_path: Path) -> None:
    """A column without a name is left out."""
    path = tmp_path / "no_header.csv"
    path.write_text("1,KR7005930003,71900,10,1764028801123,True\n" * 2)

    trades, _ = read(path, {"columns": "seq,isin,price,size,time,_", "time_unit": "ms"})

    assert len(trades) == 2
    assert not trades[0].extra


@pytest.mark.parametrize("names", ["", "price=price", "isin=isin,size=size"])
def test_a_map_changes_nothing_but_names(tmp_path: Path, names: str) -> None:
    """A line with parts of its own is taken with and without one."""
    path = tmp_path / "nested.jsonl"
    line = '{"isin":"KR7005930003","time":1764028801123456,"seq":1,"price":71900,'
    path.write_text(line + '"size":10,"book":{"bid":1},"legs":[1],"side":"B"}\n')

    [trade] = read(path, {"map": names} if names else {})[0]

    assert trade.extra == {"side": "B"}


def test_names_that_are_not_as_written_are_said(tmp_path: Path) -> None:
    """In JSON as in a header."""
    path = tmp_path / "capitals.jsonl"
    path.write_text(
        '{"ISIN":"KR7005930003","Time":1764028801123456,"Price":1,"Size":1}'
    )
    with capture_logs() as lines:
        [trade] = read(path, {})[0]
    assert trade.price == "1"
    assert lines[0]["event"] == "names taken"
    assert lines[0]["isin"] == "ISIN"


def test_an_unclosed_quote_costs_what_may_be_its_text(tmp_path: Path) -> None:
    """Another record's quotes end it; the refusal names its first line."""
    path = tmp_path / "open.csv"
    row = "KR7005930003,1764028801123456,{},{},10,{}\n"
    path.write_text(
        "isin,time,seq,price,size,memo\n"
        + row.format(1, 71900, '"never closed')
        + row.format(2, 1, "text")
        + row.format(3, 72000, '"whole"')
        + row.format(4, 72100, "")
    )

    trades, refusals = read(path, {})

    assert [trade.price for trade in trades] == ["72000", "72100"]
    assert refusals.counts == {"bad_field": 1}
    assert refusals.examples[0].startswith("line 2: ")


def test_numbers_are_looked_at_after_conditions_and_marks_before_signs(
    tmp_path: Path,
) -> None:
    """A row that is left out may have anything for a number."""
    path = tmp_path / "marks.csv"
    row = 'KR7005930003,1764028801123456,{},"{}",10,{}\n'
    path.write_text(
        "isin,time,seq,price,size,type\n"
        + row.format(1, "-71,900", "T")
        + row.format(2, "7,1", "cancel")
    )
    options = {"thousands": ",", "unsigned": "price", "scale": "price=0.1"}

    trades, refusals = read(path, {**options, "leave_out": ["type=cancel"]})

    assert [trade.price for trade in trades] == ["7190"]
    assert (refusals.total, refusals.left_out) == (0, {"type=cancel": 1})


def test_marks_of_numbers_are_those_of_json_too(tmp_path: Path) -> None:
    """Where 71.900 is a number of thousands, no line of any form has another."""
    path = tmp_path / "marks.jsonl"
    line = '{"isin":"KR7005930003","time":1764028801123456,"seq":1,"price":"71.900",'
    path.write_text(line + '"size":"10"}\n')
    [trade] = read(path, {"thousands": ".", "decimal_mark": ","})[0]
    assert trade.price == "71900"


def test_conditions_may_be_about_whatever_is_there(tmp_path: Path) -> None:
    """About a list, what lies around trades, a column in capitals; not the header."""
    row = '{"isin":"KR7005930003","time":1764028801123456,"seq":1,"price":1,"size":1'
    path = tmp_path / "conditions"
    path.write_text(
        row + ',"c":["T"]}\n' + f'{{"topic":"test","data":[{row}}}]}}\n' + row + "}\n"
    )
    options = {"leave_out": ["c~T|U", "topic=test"], "records": "data"}
    trades, refusals = read(path, options)
    assert (len(trades), refusals.total) == (1, 0)
    assert refusals.left_out == {"c~T|U": 1, "topic=test": 1}

    header = "ISIN,time,seq,PRICE,size,correction\n"
    row = "KR7005930003,1764028801123456,1,{},1,{}\n"
    path.write_text(
        header + row.format(99, 0) + row.format(2, 8) + header + row.format(3, 0)
    )
    trades, refusals = read(path, {"leave_out": ["correction", "PRICE=99"]})
    assert [trade.price for trade in trades] == ["3"]
    assert refusals.left_out == {"correction": 1, "PRICE=99": 1}
    assert refusals.counts == {"bad_field": 1}
    assert "is the header again" in refusals.examples[0]
    with pytest.raises(PipeError, match="no column 'corection', which leave_out names"):
        read(path, {"leave_out": ["corection"]})


def test_a_tape_of_which_all_is_left_out_says_by_what(tmp_path: Path) -> None:
    """It cannot be played."""
    path = tmp_path / "tape.csv"
    path.write_text("isin,time,seq,price,size,n\nKR7005930003,1764028801123456,1,1,1,8")
    options = LineOptions.model_validate({"leave_out": ["n=8"]})
    with pytest.raises(TapeError, match="holds no valid trade; left out by n=8"):
        list(read_tape(path, Refusals(), options))


def test_a_column_that_columns_call_date_is_the_day(tmp_path: Path) -> None:
    """As one that ``--map`` calls so; in another encoding, with marks and signs."""
    path = tmp_path / "day"
    row = 'KR7005930003;20261125;093000;"71.900,5";-12\n'
    path.write_bytes(gzip.compress(row.encode("utf-16")))
    form = {"encoding": "utf-16", "delimiter": ";", "thousands": "."}
    marks = {"decimal_mark": ",", "unsigned": "size", "scale": "price=10"}
    columns = {"columns": "isin,date,time,price,size", **SEOUL}

    [trade] = read(path, {**form, **marks, **columns})[0]

    assert (trade.price, trade.size) == ("719005", "12")
    assert trade.time_us == 1_795_566_600_000_000


def test_a_time_with_a_blank_is_no_number_with_marks(tmp_path: Path) -> None:
    """It is told its own rule."""
    path = tmp_path / "time.csv"
    path.write_text("isin,time,seq,price,size\nKR7005930003,2026-11-25 09:00:01,1,1,1")
    with pytest.raises(PipeError, match="needs its offset from UTC"):
        read(path, {})
