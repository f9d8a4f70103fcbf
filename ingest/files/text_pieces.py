"""Text of any encoding as pieces of UTF-8. Pure."""

import codecs
from collections.abc import Iterator

from ingest.files.file_kind import BOM, Unreadable

_ERRORS = "tickthrottle"
# No UTF-8 has this byte: what was not readable is refused, wherever it lands.
_UNREADABLE = b"\xff"


def to_utf8(pieces: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Yield the same text in UTF-8, without a mark of the order of bytes before it.

    Bytes that are no text become one that no UTF-8 has: their line is refused alone.
    ``pieces`` may be cut anywhere. Raises Unreadable without a mark that is needed.
    """
    if encoding == "utf-8":
        yield from _without_mark(pieces)
        return
    codecs.register_error(_ERRORS, _replace)
    decoder = codecs.getincrementaldecoder(encoding)(_ERRORS)

    def encoded() -> Iterator[bytes]:
        try:
            for piece in pieces:
                yield decoder.decode(piece).encode("utf-8", _ERRORS)
            yield decoder.decode(b"", final=True).encode("utf-8", _ERRORS)
        except UnicodeError as error:
            raise Unreadable(f"is not {encoding}: {error}") from None

    yield from _without_mark(encoded())


def _without_mark(pieces: Iterator[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        if piece:
            yield piece.removeprefix(BOM)
            break
        yield piece
    yield from pieces


def _replace(error: UnicodeError) -> tuple[str | bytes, int]:
    if isinstance(error, UnicodeDecodeError):
        return "\udcff", error.end
    assert isinstance(error, UnicodeEncodeError)
    return _UNREADABLE * (error.end - error.start), error.end
