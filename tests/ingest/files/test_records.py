"""Streams cut into records: lines, values over lines, quotes that stay open."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.files.records import (
    MAX_LINE_BYTES,
    MAX_LIST_BYTES,
    Record,
    cut_records,
    numbered_lines,
    split_row,
    written_lines,
)
from ingest.trade import InvalidTrade

HEADER = b"a,b,memo\n"


def cut(stream: bytes, size: int = 1_000_000, delimiter: str = ",") -> list[Record]:
    """Return all records of a stream that comes in pieces."""
    pieces = (stream[i : i + size] for i in range(0, len(stream), size))
    return [record for part in cut_records(pieces, delimiter) for record in part]


def taken(stream: bytes, size: int = 1_000_000) -> list[Record]:
    """Return those that are records."""
    return [r for r in cut(stream, size) if not isinstance(r[1], InvalidTrade)]


def refused(stream: bytes) -> list[tuple[int, str]]:
    """Return those that are none, in words."""
    return [(n, str(r)) for n, r in cut(stream) if isinstance(r, InvalidTrade)]


@given(
    st.lists(st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"")), max_size=20),
    st.data(),
)
def test_lines_are_the_same_however_they_come(
    lines: list[bytes], data: st.DataObject
) -> None:
    stream = b"\n".join(lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    pieces = [
        stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)
    ]

    came = [pair for part in numbered_lines(iter(pieces)) for pair in part]

    assert written_lines(came) == [
        (number, line.rstrip(b"\r"))
        for number, line in enumerate(lines, 1)
        if line and not line.isspace()
    ]


@pytest.mark.parametrize("size", [MAX_LINE_BYTES + 1, 5 * MAX_LINE_BYTES])
def test_a_line_that_is_too_long_is_one_and_not_held(size: int) -> None:
    """The lines around it are read."""
    stream = b"a\n" + b"x" * size + b"\nb\n" + b"y" * size
    pieces = (stream[i : i + 10_000] for i in range(0, len(stream), 10_000))

    came = [pair for part in numbered_lines(pieces) for pair in part]

    assert [number for number, _ in came] == [1, 2, 3, 4]
    assert [line for _, line in came if isinstance(line, bytes)] == [b"a", b"b"]
    assert all("in a line" in str(line) for _, line in (came[1], came[3]))


@pytest.mark.parametrize("size", [1, 3, 10, 1_000])
def test_a_value_in_quotes_may_have_line_breaks(size: int) -> None:
    """Blank lines and CR belong to it, too."""
    value = b'"two\r\n\r\nlines, ""quoted"""'
    stream = HEADER + b"1,2," + value + b'\r\n3,4,"5"\n\n6,7,8'

    assert cut(stream, size) == [
        (1, HEADER.strip()),
        (2, b"1,2," + value),
        (5, b'3,4,"5"'),
        (7, b"6,7,8"),
    ]
    assert split_row(b"1,2," + value)[2] == 'two\r\n\r\nlines, "quoted"'


def test_lines_without_an_open_quote_wait_for_nothing() -> None:
    """Each piece yields what it completes."""
    pieces = iter([HEADER, b'1,2,"x"\n', b"3,4,5\n6,"])
    parts = cut_records(pieces, ",")
    assert [len(next(parts)) for _ in range(3)] == [1, 1, 1]


def test_a_quote_that_is_never_closed_makes_no_record_of_text() -> None:
    """The lines behind it may be text that looks like trades."""
    stream = HEADER + b'1,2,"open\n3,4,text\n5,6,text\n'

    assert taken(stream) == [(1, HEADER.strip())]
    [(number, words)] = refused(stream)
    assert number == 2
    assert "has a quote that is not closed by the end" in words


def test_another_records_quotes_show_that_one_was_not_closed() -> None:
    """From there on records are taken again."""
    stream = HEADER + b'1,2,"open\n3,4,text\n5,6,"ok"\n7,8,9\n'

    assert taken(stream)[1:] == [(4, b'5,6,"ok"'), (5, b"7,8,9")]
    [(number, words)] = refused(stream)
    assert number == 2
    assert "not closed by line 4, which has others" in words


def test_an_open_quote_has_a_bound() -> None:
    """Behind it records are taken again."""
    line = b"3,4," + b"x" * 90 + b"\n"
    stream = HEADER + b'1,2,"open\n' + line * 1_000

    records = taken(stream, 5_000)

    [(number, words)] = refused(stream)
    assert number == 2
    assert f"within {MAX_LINE_BYTES} bytes" in words
    assert len(records) == 1 + 1_000 - int(words.split("line ")[1].split(",")[0]) + 2


def test_what_stands_before_a_header_is_left_out() -> None:
    """Comments, blank lines, Excel's word on its delimiter; not behind it."""
    stream = b"\n# by a script\nsep=;\n" + HEADER + b"# no, 2, 3\n"
    assert cut(stream, delimiter=";") == [(4, HEADER.strip()), (5, b"# no, 2, 3")]


def test_quotes_of_json_are_no_matter_of_csv() -> None:
    """A line that is cut off is a line."""
    stream = b'{"a":1}\n{"a":"\n{"a":2}\n'
    assert [number for number, _ in cut(stream)] == [1, 2, 3]


def test_a_list_of_json_may_be_long() -> None:
    """Up to a bound."""
    long = b"[" + b" " * MAX_LINE_BYTES * 2 + b"]"
    longer = b"[" + b" " * MAX_LIST_BYTES + b"]"
    assert [n for n, r in cut(long + b"\n" + longer) if isinstance(r, bytes)] == [1]


@given(
    st.lists(
        st.lists(
            st.text(st.sampled_from('a,"\n\r '), max_size=6), min_size=2, max_size=3
        ),
        min_size=1,
        max_size=6,
    ),
    st.integers(1, 9),
)
def test_what_csv_writes_is_read_back(rows: list[list[str]], size: int) -> None:
    """However it is cut into pieces."""
    rows = [["head", "er"], *rows]
    quoted = [['"' + v.replace('"', '""') + '"' for v in row] for row in rows]
    stream = "\n".join(",".join(row) for row in quoted).encode()

    records = [record for _, record in cut(stream, size)]

    assert [split_row(r) for r in records if isinstance(r, bytes)] == rows


@given(st.text(st.sampled_from('a,"\n\r#'), max_size=80), st.integers(1, 9))
def test_any_text_is_records_and_refusals(text: str, size: int) -> None:
    """The same ones however it comes, and their numbers rise."""
    stream = HEADER + text.encode()
    records = cut(stream, size)
    numbers = [number for number, _ in records]
    assert numbers == sorted(set(numbers))
    assert [str(r) for r in records] == [str(r) for r in cut(stream)]


@pytest.mark.parametrize(
    ("line", "values"),
    [(b"a, b ,c", ["a", "b ", "c"]), (b'a, "b, c", d', ["a", "b, c", "d"])],
    ids=["plain", "quoted"],
)
def test_spaces_after_commas_are_no_values(line: bytes, values: list[str]) -> None:
    """Where the header has them, too."""
    assert split_row(line, ",", True) == values


@pytest.mark.parametrize(
    "line",
    [b'"a"b,c', b'"a', b"\xff,a", b"x" * 70_000],
    ids=["text behind a quote", "open quote", "no UTF-8", "long"],
)
def test_a_row_that_is_none_is_refused(line: bytes) -> None:
    """Strictly: no value is made of half of a quote."""
    with pytest.raises(InvalidTrade):
        split_row(line)
