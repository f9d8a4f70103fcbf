"""The instrument list: what is read of it, and what is refused."""

import gzip
from pathlib import Path

import pytest

from ingest.files.file_form import FileForm
from ingest.instrument_table.instrument_entry import BadInstruments, InstrumentEntry
from ingest.instrument_table.instrument_list import (
    MOST_INSTRUMENTS,
    parse_list,
    read_instruments,
    read_list,
)
from ingest.instrument_table.known_instruments import Instruments
from ingest.sources.market import encode_instruments
from ingest.sources.simulator import Simulator
from tests.conftest import TAPES, input_file, skip_or_fail
from tests.gateway.samples import HYNIX, INSTRUMENT_LIST, SAMSUNG, make_isins
from tickthrottle_client.key_v1 import SymbolKeys, Venue, key_of

KRX = TAPES.parent / "krx" / "issues_2026-03-20.csv"


def test_columns_come_in_any_order_and_others_are_left_alone() -> None:
    """Where there is no sector, the industry is the sector."""
    lines = ["note, industry ,isin\n", f"x,chips,{SAMSUNG}\n", "\n"]
    assert parse_list(lines).instruments == [InstrumentEntry(SAMSUNG, sector="chips")]
    both = ["isin,sector,industry\n", f"{SAMSUNG},a,b\n"]
    assert parse_list(both).instruments == [InstrumentEntry(SAMSUNG, sector="a")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1, header '': must have a column isin"),
        ("code,name\n", "header 'code,name': must have a column isin"),
        ("isin,isin\n", "line 1, header 'isin': must be there only once"),
        (f"isin,name\n{SAMSUNG}\n", "line 2: has 1 cells, the header has 2"),
        ("isin\nKR7005930004\n", "line 2, isin 'KR7005930004': check digit is 3"),
        ("isin,code\n,005930\n", "line 2, isin '': must be 2 capitals"),
        (f"isin,code\n{SAMSUNG},0059/0\n", "line 2, code '0059/0': must be 1 to 11"),
        (f"isin,code\n{SAMSUNG},{HYNIX}\n", f"code '{HYNIX}': must be 1 to 11"),
        (f"isin,prev_close\n{SAMSUNG},1e3\n", "prev_close '1e3': must be a plain"),
        (f"isin,prev_close\n{SAMSUNG},0.0\n", "prev_close '0.0': must be a plain"),
        (f"isin\n{SAMSUNG}\n{SAMSUNG}\n", f"line 3, isin '{SAMSUNG}': is on line 2"),
        (
            f"isin,code\n{SAMSUNG},1\n{HYNIX},1\n",
            "line 3, code '1': is on line 2 already",
        ),
        (f"isin,name\n{SAMSUNG},{'x' * 201}\n", "line 2, name 'xxxxx"),
        (f'isin,name\n{SAMSUNG},"x\n', "line 2: not CSV: "),
    ],
)
def test_a_bad_list_is_refused_with_its_line(
    tmp_path: Path, text: str, words: str
) -> None:
    """One sentence: file, line, field, value, rule."""
    path = tmp_path / "instruments.csv"
    path.write_text(text, "utf-8")
    with pytest.raises(BadInstruments) as caught:
        read_instruments(path)
    message = str(caught.value)
    assert message.startswith(f"instruments_file {path}: ")
    assert words in message
    assert "\n" not in message


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Not there, or not text."""
    path = tmp_path / "instruments.csv"
    with pytest.raises(BadInstruments, match="No such file"):
        read_instruments(path)
    path.write_bytes(b"isin,name\n\xff\xfe")
    with pytest.raises(BadInstruments, match="must be UTF-8"):
        read_instruments(path)


def test_a_list_has_a_bound() -> None:
    """However long a file is."""
    rows = (f"{isin}\n" for isin in make_isins(MOST_INSTRUMENTS + 1))
    with pytest.raises(BadInstruments, match="a list has at most 100000 instruments"):
        parse_list(["isin\n", *rows])


def test_a_mark_of_byte_order_is_no_part_of_the_header(tmp_path: Path) -> None:
    """Spreadsheets write one."""
    path = tmp_path / "instruments.csv"
    path.write_bytes(b"\xef\xbb\xbf" + INSTRUMENT_LIST.encode())
    assert len(read_instruments(path)) == 3


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (f"ISIN,Code,Prev_Close\n{SAMSUNG},005930,71500\n", {}),
        (
            f"# a list\nisin;code;prev_close;\n{SAMSUNG};005930;71500;\n",
            {"delimiter": ";"},
        ),
        (f'{SAMSUNG},005930,"71.500,00"\n', {"columns": "isin,code,prev_close"}),
        (f'{{"isin":"{SAMSUNG}","code":"005930","prev_close":71500,"x":[1]}}\n', {}),
    ],
    ids=["capitals", "semicolons", "no header", "JSON"],
)
def test_a_list_may_have_the_forms_of_files(
    tmp_path: Path, content: str, options: dict[str, str]
) -> None:
    """With the options of files, packed or not."""
    marks = {"thousands": ".", "decimal_mark": ","} if "71." in content else {}
    path = tmp_path / "instruments"
    path.write_bytes(gzip.compress(content.encode()))
    [instrument] = read_list(
        path, FileForm.model_validate({**options, **marks})
    ).instruments
    assert (instrument.isin, instrument.code) == (SAMSUNG, "005930")
    assert instrument.prev_close in ("71500", "71500.00")


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        (f"isin;code\n{SAMSUNG};1\n", {}, "by semicolons: --form delimiter=';'"),
        ("표준코드,단축코드\n", {}, "a column isin: --map isin=표준코드,code=단축코드"),
        (f"{SAMSUNG},005930\n", {}, "or no header and: --form columns=isin,code,name"),
        (
            "isin\n",
            {"map": "price=px"},
            "map: 'price' is no field of an instrument: isin",
        ),
        ("isin\n", {"map": "code=px"}, "has no column 'px'"),
        (
            f'isin,prev_close\n{SAMSUNG},"7,5"\n',
            {"thousands": ","},
            "has ',' elsewhere",
        ),
        (f'isin,prev_close\n{SAMSUNG},"71,5"\n', {}, "thousands=, takes commas"),
        ('{"isin":\n', {}, "line 1: not JSON"),
    ],
    ids=range(8),
)
def test_what_helps_is_said(
    tmp_path: Path, content: str, options: dict[str, str], words: str
) -> None:
    """Where a list is read that may have options."""
    path = tmp_path / "instruments.csv"
    path.write_text(content, "utf-8")
    with pytest.raises(BadInstruments) as caught:
        read_list(path, FileForm.model_validate(options))
    assert words in str(caught.value)


def test_a_list_for_symbols_names_the_command_that_has_options(tmp_path: Path) -> None:
    """The options of `ingest` are those of its trades."""
    path = tmp_path / "instruments.csv"
    path.write_bytes("isin,name\nKR7005930003,가나전자\n".encode("cp949"))
    with pytest.raises(
        BadInstruments, match="must be UTF-8; `instruments load` takes it with"
    ):
        read_instruments(path)


def test_the_simulated_markets_list_is_read_as_it_is() -> None:
    """What `tickthrottle instruments` writes, a gateway takes."""
    simulated = Simulator(seed=1, instruments=200).listing()
    instruments = Instruments(
        parse_list(encode_instruments(simulated).splitlines(keepends=True)).instruments
    )
    assert {i.isin for i in simulated} == {i.isin for i in instruments}
    assert all(
        instruments.of_code(i.code) is instruments.get(i.isin) for i in simulated
    )


def test_the_exchanges_own_list_is_read_as_it_is() -> None:
    """All shares of the Korean exchange, ISINs and codes of every form."""
    if not KRX.exists():
        skip_or_fail(f"no {KRX}")
    instruments = read_instruments(KRX)
    assert len(instruments) == 2_879
    samsung = instruments.of_code("005930")
    assert samsung is not None
    assert (samsung.isin, samsung.name, samsung.market) == (
        SAMSUNG,
        "삼성전자",
        "KOSPI",
    )
    assert all(
        instrument.code and instrument.name and instrument.prev_close
        for instrument in instruments
    )
    assert samsung.listed_shares == "5919637922"
    assert len(instruments.members("market:KOSDAQ") or ()) > 1_000
    assert instruments.members(f"sector:{samsung.sector}") is not None


def keys(text: str = "XMKT") -> SymbolKeys:
    """The keys of a venue."""
    return SymbolKeys(Venue.parse(text))


def test_a_list_without_isins_gets_the_keys_of_its_codes() -> None:
    path = input_file("g/g04_list_no_isin.csv")
    instruments = read_instruments(path, keys())
    assert instruments.isin_of("BTC") == key_of("QX", "BTC")
    assert instruments.isin_of("KOSPI200") == key_of("QX", "KOSPI200")
    with pytest.raises(BadInstruments, match="--venue makes keys of symbols or codes"):
        read_instruments(path)


def test_a_symbol_comes_before_a_code_and_an_isin_before_both() -> None:
    lines = [
        "isin,code,symbol\n",
        f"{SAMSUNG},005930,x\n",
        ",BTCP,BTC-USDT-SWAP\n",
        ",ETH,\n",
    ]
    isins = [instrument.isin for instrument in parse_list_with(lines)]
    assert isins == [SAMSUNG, key_of("QM", "BTC-USDT-SWAP"), key_of("QM", "ETH")]


def parse_list_with(lines: list[str]) -> list[InstrumentEntry]:
    """Read a list with the keys of a venue that has letters of its own."""
    return parse_list(lines, keys=keys("XMKT=QM")).instruments


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["name\n", "x\n"], "must have a column isin, symbol or code"),
        (["isin,code\n", ",\n"], "line 2, isin '': must be"),
        (["symbol\n", f"{'x' * 65}\n"], "line 2, symbol 'xxxx"),
        (["symbol\n", "A\n", "A\n"], "line 3, isin 'QM1A"),
        (["symbol,symbol\n"], "'symbol': must be there only once"),
    ],
)
def test_what_can_have_no_key_is_refused(lines: list[str], words: str) -> None:
    with pytest.raises(BadInstruments) as caught:
        parse_list_with(lines)
    assert words in str(caught.value)


def test_a_wrong_check_digit_is_told_with_the_right_one() -> None:
    with pytest.raises(
        BadInstruments, match=r"'QX0000000BTC': .* check digit, which is 7"
    ):
        read_instruments(input_file("g/g05_list_bad_check.csv"))


def test_keys_are_made_of_lists_in_any_form(tmp_path: Path) -> None:
    """``symbol`` may be called otherwise; a list without it names both options."""
    path = tmp_path / "coins.csv"
    path.write_bytes("티커;이름\nBTC;비트코인\n".encode("cp949"))
    options = {"encoding": "cp949", "delimiter": ";"}
    form = FileForm.model_validate({**options, "map": "symbol=티커,name=이름"})
    wanted = read_list(path, form, keys("XMKT=QM"))
    assert [(i.isin, i.name) for i in wanted.instruments] == [
        ("QM1BTC000008", "비트코인")
    ]
    assert wanted.fields == ("name",)
    with pytest.raises(BadInstruments, match="'symbol' is no field of an instrument"):
        read_list(path, form)

    path.write_text("표준코드\nKR7005930003\n", "utf-8")
    with pytest.raises(
        BadInstruments, match="--map isin=표준코드 perhaps; --venue makes"
    ):
        read_list(path)
    with pytest.raises(
        BadInstruments, match=r"`instruments load` takes it .*; --venue makes"
    ):
        read_instruments(path)
