"""What bytes are, told by their first ones."""

import pytest

from ingest.files.file_kind import foreign_kind, guess_encoding, packed_kind


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (b"\xfd7zXZ\x00\x00\x04", "is xz: unpack it first"),
        (b"BZh91AY&SY", "is bzip2: unpack it first"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "is an old Excel workbook"),
        (b"\x1f\x8b\x08\x00", "is gzip within what was unpacked"),
        (b"\xff\xfei\x00s\x00", "is UTF-16: --form encoding=utf-16"),
        (b"\xff\xfe\x00\x00i\x00\x00\x00", "is UTF-32: --form encoding=utf-32"),
        (b"i\x00s\x00i\x00n\x00,\x00", "without its mark: --form encoding=utf-16-le"),
        (b"\x00i\x00s\x00i\x00n\x00,", "without its mark: --form encoding=utf-16-be"),
        (b"day.csv".ljust(257, b"\0") + b"ustar\0", "is a tar archive: unpack it"),
        (b"<!DOCTYPE html>", "is a page of HTML or XML"),
        (b"isin,time\rKR7005930003,1", "has old line ends, CR alone"),
        ("종목코드,체결가".encode("cp949"), "UTF-8: --form encoding=cp949 perhaps"),
        (b"\x01\x02\xff", "is neither CSV with a header nor JSON lines"),
    ],
    ids=range(13),
)
def test_a_first_line_that_is_no_text_is_named(first: bytes, words: str) -> None:
    """With what to do about it."""
    assert words in (foreign_kind(first) or "")


@pytest.mark.parametrize(
    "text", ["isin,time\r", "종목코드,체결가", '{"a":1}', "ORC,b", "\t\t"], ids=range(5)
)
def test_text_is_no_kind_of_its_own(text: str) -> None:
    """Whatever it begins with."""
    assert foreign_kind(text.encode()) is None


def test_text_that_is_not_in_the_encoding_of_its_option_is_told_so() -> None:
    """Not that it is no UTF-8."""
    assert foreign_kind(b"price\xff,size", "cp949") == "is not cp949"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("isin,price", "utf-8"),
        ("종목코드,체결가", "utf-8"),
        ("종목코드,체결가", "cp949"),
        ("銘柄コード,約定値段", "cp932"),
        ("证券代码,成交价格", "gb18030"),
        ("Währung,Kurs", "cp1252"),
        ("isin,price", "utf-16"),
        ("isin,price", "utf-16-le"),
        ("isin,price", "utf-16-be"),
    ],
)
def test_an_encoding_is_guessed(text: str, encoding: str) -> None:
    """From letters; a sample may end within one."""
    assert guess_encoding(text.encode(encoding)) == encoding


def test_what_is_packed_is_known_by_its_first_bytes() -> None:
    """Whatever its name."""
    assert packed_kind(b"\x1f\x8b\x08") == "gzip"
    assert packed_kind(b"PAR1") == "Parquet"
    assert packed_kind(b"PRICE,SIZE") is None
