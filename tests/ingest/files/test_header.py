"""Headers: which column is which, and what is said if one is missing."""

from collections.abc import Sequence

import pytest

from ingest.files.header import guess_delimiter, guess_map, name_columns
from ingest.files.records import BadHeader

FIELDS = ("isin", "time", "seq", "price", "size")
NEEDED = ("isin", "time", "price", "size")


def named(header: str, **names: str) -> list[str]:
    """Return what the columns of a header hold."""
    return name_columns(header.split(","), names, FIELDS, NEEDED, ",")


@pytest.mark.parametrize(
    ("header", "names", "columns"),
    [
        ("isin,time,price,size,memo", {}, ["isin", "time", "price", "size", "memo"]),
        (",isin,time,price,size,", {}, ["", "isin", "time", "price", "size", ""]),
        ("ISIN,Time,PRICE,Size", {}, ["isin", "time", "price", "size"]),
        ("Size,isin,time,price,size", {}, ["Size", "isin", "time", "price", "size"]),
        (
            "sym,time,price,size,isin",
            {"isin": "sym"},
            ["isin", "time", "price", "size", ""],
        ),
        ("sym,t,p,v", dict(zip(NEEDED, ("sym", "t", "p", "v"), strict=True)), NEEDED),
    ],
    ids=["plain", "unnamed", "capitals", "both", "mapped", "all mapped"],
)
def test_columns_hold_fields(
    header: str, names: dict[str, str], columns: Sequence[str]
) -> None:
    """Capitals are no matter if it is plain which is meant."""
    assert named(header, **names) == list(columns)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("isin\ttime\tprice\tsize", "separated by tabs: --form delimiter=tab"),
        ("isin;time;price;size", "separated by semicolons: --form delimiter=';'"),
        ("isin|time|price|size", "separated by |: --form delimiter='|'"),
        (
            "symbol,timestamp,px,quantity,sequence",
            "--map isin=symbol,time=timestamp,price=px,size=quantity,seq=sequence",
        ),
        (
            "315,2193.4,0.01,376,376,1764028801542318,F",
            "columns=isin,time,price,size,_ names the columns",
        ),
        ("KR7005930003,2026-11-25T09:00:01+09:00,71900,10", "looks like data"),
        ("a,b,c,d", "no column 'isin'; trades need isin, time, price, size; it has a,"),
        ("isin,time,price,price,size", "'price' is there twice"),
    ],
)
def test_what_is_wrong_is_said_with_what_helps(header: str, words: str) -> None:
    """By what it is, not by what it is not."""
    with pytest.raises(BadHeader) as caught:
        named(header)
    assert words in str(caught.value)


def test_a_mapped_column_that_is_not_there_is_said() -> None:
    """With the header, and its delimiter."""
    with pytest.raises(BadHeader, match=r"no column 'px', .*: --form delimiter=tab"):
        named("isin\ttime\tpx\tsize", price="px")


def test_guesses() -> None:
    """Only of what has no column of its own name."""
    assert guess_delimiter("a,b;c;d") == ";"
    assert guess_delimiter("a") == ","
    assert guess_map(["Symbol", "price", "T"], ("isin", "price", "time")) == {
        "isin": "Symbol",
        "time": "T",
    }
