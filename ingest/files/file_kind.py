"""What bytes are that are no lines of UTF-8, and what to do about it. Pure."""

import re

BOM = b"\xef\xbb\xbf"
"""What some programs put before UTF-8."""

HEAD_BYTES = 8
"""So many bytes tell what is unpacked."""

PACKED = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
    b"PAR1": "Parquet",
}
"""What is unpacked by itself, by what it begins with."""

_OTHERS = {
    b"\xfd7zXZ\x00": "is xz: unpack it first, xz -dc FILE | ... -",
    b"BZh": "is bzip2: unpack it first, bzip2 -dc FILE | ... -",
    b"\x04\x22\x4d\x18": "is lz4: unpack it first, lz4 -dc FILE | ... -",
    b"7z\xbc\xaf": "is 7-Zip: unpack it first",
    b"Rar!": "is RAR: unpack it first",
    b"\xd0\xcf\x11\xe0": "is an old Excel workbook: save it as CSV in UTF-8",
    b"ARROW1": "is an Arrow file: write it as Parquet",
    b"ORC": "is ORC: write it as Parquet",
    b"Obj\x01": "is Avro: write it as JSON lines",
    b"SQLite format 3": "is an SQLite database: write its table as CSV",
    b"\x89HDF": "is HDF5: write its table as Parquet or CSV",
    b"%PDF": "is a PDF",
    b"DBN": "is Databento's own form: write it as CSV or JSON with its `dbn` program",
}
_MARKS = {
    b"\xff\xfe\x00\x00": "is UTF-32: --form encoding=utf-32",
    b"\xff\xfe": "is UTF-16: --form encoding=utf-16",
    b"\xfe\xff": "is UTF-16: --form encoding=utf-16",
}

# Of languages whose letters have two bytes.
_LETTERS_IN_A_ROW = re.compile(rb"[\x80-\xff]{4}")
# No text of any encoding has them.
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


class Unreadable(ValueError):
    """A file that cannot be unpacked or decoded; says the rule, without the file."""


class DamagedFile(ValueError):
    """A packed file that breaks off, or whose content is not what was packed."""


def packed_kind(head: bytes) -> str | None:
    """Return what unpacks a file with these first bytes, None for plain text."""
    kinds = (kind for magic, kind in PACKED.items() if head.startswith(magic))
    return next(kinds, None)


def foreign_file(head: bytes) -> str | None:
    """Say what a file with these first bytes is that is no text; None: it may be."""
    for magic, words in _OTHERS.items():
        if head.startswith(magic) and not (magic == b"ORC" and b"," in head):
            return words
    if head[257:262] == b"ustar":
        return "is a tar archive: unpack it first, tar -xOf FILE | ... -"
    return None


def foreign_kind(first: bytes, encoding: str = "utf-8") -> str | None:
    """Say what a first line is that is neither CSV nor JSON; None: it may be either.

    ``encoding`` is what it was said to be in.
    """
    mark = next((m for m in _MARKS if first.startswith(m)), None)
    if words := foreign_file(first) or (mark and _MARKS[mark]):
        return words
    if kind := packed_kind(first):
        return f"is {kind} within what was unpacked: unpack it first"
    if first.lstrip()[:1] == b"<":
        return "is a page of HTML or XML, perhaps in place of what was asked for"
    if first.count(b"\0") >= max(len(first) // 4, 1):
        order = "be" if first[:1] == b"\0" else "le"
        return f"is UTF-16 without its mark: --form encoding=utf-16-{order}"
    if _CONTROL.search(first):
        return "is neither CSV with a header nor JSON lines"
    if b"\r" in first.strip(b"\r"):
        return (
            "has old line ends, CR alone: tr '\\r' '\\n' < FILE | ... - makes new ones"
        )
    try:
        first.decode()
    except UnicodeDecodeError:
        if encoding != "utf-8":
            return f"is not {encoding}"
        return f"is not UTF-8: --form encoding={guess_encoding(first)} perhaps"
    return None


def guess_encoding(sample: bytes) -> str:
    """Guess in which encoding a text is, from its first bytes."""
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if sample[:64].count(b"\0") * 4 >= len(sample[:64]) > 0:
        return "utf-16-be" if sample[:1] == b"\0" else "utf-16-le"
    if _reads(sample, "utf-8"):
        return "utf-8"
    if _LETTERS_IN_A_ROW.search(sample) is None:
        return "cp1252"
    # Each of them reads most of what the others write: the letters decide.
    for encoding, letters in _LETTERS.items():
        strange = "".join(c for c in _reads(sample, encoding) if not c.isascii())
        if strange and len(letters.findall(strange)) * 10 >= len(strange) * 9:
            return encoding
    return "cp1252"


def _reads(sample: bytes, encoding: str) -> str:
    """Return a text whose last character may be cut; nothing if it does not read."""
    for cut in range(4):
        try:
            return sample[: len(sample) - cut].decode(encoding)
        except UnicodeDecodeError:
            continue
    return ""


_LETTERS = {
    "cp949": re.compile("[\uac00-\ud7a3]"),
    "cp932": re.compile("[\u3041-\u30ff\u4e00-\u9fff]"),
    "gb18030": re.compile("[\u4e00-\u9fff]"),
}
"""Hangul, Japanese, Chinese."""
