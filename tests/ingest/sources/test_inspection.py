"""What a file seems to be: the options that are guessed, and that they are right."""

import gzip
import json
from typing import Any

import pytest

from ingest.files.open_pieces import read_pieces
from ingest.instrument_table.instrument_list import read_instruments
from ingest.sources.inspection import SAMPLE_BYTES, Inspection, inspect_sample
from ingest.sources.trade_lines import LineOptions
from tests.conftest import input_file

MAPPED = {"isin": "종목코드", "time": "체결시각", "price": "체결가", "size": "거래량"}


def inspect(name: str, **options: Any) -> Inspection:
    """Inspect one of the inputs."""
    sample = b"".join(read_pieces(input_file(name)))
    return inspect_sample(sample, LineOptions(**options))


def guessed(seen: Inspection) -> dict[str, Any]:
    """Return the options that are not as by default."""
    return seen.options.model_dump(exclude_defaults=True)


@pytest.mark.parametrize(
    ("name", "options", "form"),
    [
        ("b/b03_bom_crlf.csv", {}, "CSV, separated by commas"),
        ("b/b04_tabs.tsv", {"delimiter": "\t"}, "CSV, separated by tabs"),
        ("b/b07_float_epoch_s.csv", {"time_unit": "s"}, "CSV, separated by commas"),
        ("b/b19_utf16.csv", {"encoding": "utf-16"}, "CSV, separated by commas"),
        ("b/b32_nul_tail.csv", {}, "CSV, separated by commas"),
        ("b/b39_no_newline_at_end.jsonl", {}, "JSON lines"),
        ("b/b51_cp949_text_column.csv", {"encoding": "cp949"}, "CSV, separated by"),
    ],
)
def test_what_can_be_seen_is_guessed(
    name: str, options: dict[str, Any], form: str
) -> None:
    """And takes the trades."""
    seen = inspect(name)
    assert guessed(seen) == options
    assert seen.form.startswith(form)
    assert seen.taken > 0
    assert not seen.problem


def test_names_encoding_and_marks_are_guessed_together() -> None:
    """Of a file of the Korean exchange; where its clocks stand, nobody can know."""
    seen = inspect("b/b01_krx_cp949.csv")
    assert guessed(seen) == {"map": MAPPED, "encoding": "cp949", "thousands": ","}
    assert seen.refusals.counts == {"bad_time": 2}


def test_a_list_inside_an_object_is_found_behind_other_lines() -> None:
    """The line that has most of a trade tells what its fields are called."""
    trades = [{"sym": "KR7005930003", "d": {"px": "1.5", "qty": 2}}]
    lines = [{"status": "open"}, {"ts": 1_764_028_801_123, "data": trades}]
    sample = "\n".join(map(json.dumps, lines)).encode()

    seen = inspect_sample(sample, LineOptions())

    assert guessed(seen) == {
        "map": {"isin": "sym", "time": "ts", "price": "d.px", "size": "d.qty"},
        "records": "data",
        "time_unit": "ms",
    }
    assert [trade.price for trade in seen.trades] == ["1.5"]


def test_symbols_are_read_up_to_the_list_that_is_missing() -> None:
    """With the list they are trades."""
    seen = inspect("b/b06_polygon_flat.csv")
    assert guessed(seen)["time_unit"] == "ns"
    assert seen.refusals.counts == {"bad_isin": 4}
    sample = b"".join(read_pieces(input_file("b/b06_polygon_flat.csv")))
    instruments = read_instruments(input_file("b/list_us.csv"))
    assert inspect_sample(sample, LineOptions(), instruments).taken == 4


def test_what_is_said_is_not_guessed() -> None:
    """Even if a guess would take more."""
    seen = inspect("b/b07_float_epoch_s.csv", time_unit="us")
    assert guessed(seen) == {}
    assert seen.taken == 0


def test_a_source_without_times_is_stamped() -> None:
    """That is no guess of a value: there is none."""
    seen = inspect_sample(b"isin,price,size\nKR7005930003,1,2\n", LineOptions())
    assert guessed(seen) == {"stamp": "now"}
    assert seen.taken == 1


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("b/b16_binance_aggtrades_noheader.csv", "looks like data"),
        ("b/b20_cr_only.csv", "has old line ends"),
        ("b/b24b_json_pretty.json", "is JSON over several lines"),
        ("b/b37_krx_list_cp949.csv", "no column 'price'"),
    ],
)
def test_what_cannot_be_read_is_said(name: str, words: str) -> None:
    """Beside its first lines."""
    seen = inspect(name)
    assert words in seen.problem
    assert seen.head


def test_a_sample_ends_anywhere() -> None:
    """Its last line is cut off, and is none."""
    row = b"KR7005930003,1764028801123456,1,71900,10\n"
    sample = (b"isin,time,seq,price,size,memo\n" + row * 40_000)[:SAMPLE_BYTES]
    assert inspect_sample(sample, LineOptions()).records == 1_000
    long = b"isin,time,seq,price,size\n" + row + b"KR7005930003," + b" " * SAMPLE_BYTES
    assert inspect_sample(long, LineOptions()).refusals.total == 0


@pytest.mark.parametrize(
    "sample", [b"", b"\n\n", b"{", b"\xff\x00", b'["'], ids=range(5)
)
def test_any_sample_is_a_problem_or_trades(sample: bytes) -> None:
    """Nothing is raised."""
    assert inspect_sample(sample, LineOptions()).problem
    assert inspect_sample(gzip.compress(sample), LineOptions()).problem


ALPACA = (
    '{"isin":"US0378331005","time":1795617000000000,"price":230,"size":1,"seq":%d,'
    '"c":%s,"z":"%s"}'
)


def test_numbers_of_sale_conditions_are_seen() -> None:
    """Without a list, too, where no symbol is a trade's."""
    seen = inspect("b/b06_polygon_flat.csv")
    assert str(seen.options.updates) == "us_equities_numeric:conditions"


def test_letters_of_sale_conditions_are_seen_with_their_tape() -> None:
    lines = [ALPACA % (1, '["@"]', "C"), ALPACA % (2, '[" ","I"]', "A")]
    seen = inspect_sample("\n".join(lines).encode(), LineOptions())
    assert str(seen.options.updates) == "us_equities:c:z"
    csv = b"isin,time,price,size,TR_SCOND,tape,x\nUS0378331005,%d,1,1,@FTI,C,V\n"
    seen = inspect_sample(csv % 1795617000000000, LineOptions())
    assert str(seen.options.updates) == "us_equities:TR_SCOND:tape:x"


@pytest.mark.parametrize(
    ("codes", "tape"),
    [('["@"]', "C"), ('["@","?"]', "C"), ('["I"]', "Q"), ("[]", "C"), ("17", "C")],
)
def test_what_is_no_sale_condition_for_sure_is_not_guessed(
    codes: str, tape: str
) -> None:
    seen = inspect_sample((ALPACA % (1, codes, tape)).encode(), LineOptions())
    assert seen.options.updates is None
    assert seen.taken == 1
