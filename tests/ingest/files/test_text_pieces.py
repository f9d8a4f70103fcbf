"""Text of any encoding, cut anywhere."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.files.file_kind import Unreadable
from ingest.files.text_pieces import to_utf8

TEXT = '종목,체결가\n"가나",71900\n'


@pytest.mark.parametrize("encoding", ["utf-8", "cp949", "utf-16", "utf-8-sig"])
def test_text_is_the_same_however_it_is_cut(encoding: str) -> None:
    """Also within a letter; the mark of the order of bytes is no text."""
    content = TEXT.encode(encoding)
    for size in (1, 2, 3, 7, 100):
        pieces = [content[i : i + size] for i in range(0, len(content), size)]
        assert b"".join(to_utf8(iter(pieces), encoding)).decode() == TEXT


def test_what_is_no_text_is_no_utf_8_and_harms_nothing_else() -> None:
    """So its line is refused, and the others are not."""
    content = "가,1\n".encode("cp949") + b"\xff\xff,2\n" + "나,3\n".encode("cp949")

    first, second, third, _ = b"".join(to_utf8(iter([content]), "cp949")).split(b"\n")

    assert (first.decode(), third.decode()) == ("가,1", "나,3")
    with pytest.raises(UnicodeDecodeError):
        second.decode()


@given(st.binary(max_size=60), st.sampled_from(["cp949", "utf-16", "utf-7", "ascii"]))
def test_any_bytes_are_read(content: bytes, encoding: str) -> None:
    """Or it is said why not, whatever comes."""
    with suppress(Unreadable):
        assert isinstance(b"".join(to_utf8(iter([content]), encoding)), bytes)


def test_a_mark_of_utf_8_is_left_out_and_nothing_waits() -> None:
    """Empty pieces say that nothing came."""
    pieces = [b"", b"\xef\xbb\xbfisin", b"", b"\xef\xbb\xbf"]
    assert list(to_utf8(iter(pieces), "utf-8")) == [b"", b"isin", b"", b"\xef\xbb\xbf"]
