"""Which of an instrument's trades is newer: the one of the greater version. Pure.

A trade's own version is ``(time, seq)`` (``Trade.version``); the position in the log
decides between equal ones. Columns are sorted by ``ORDER``; everything else (rows, the
last-value table, the publish script, the gateway's board) compares the version as text.
"""

ORDER = ("time", "seq", "position")
"""The columns that decide, the first one first."""

VERSION_CHARS = 54
"""Length of a version as text."""


NO_VERSION = b"0" * VERSION_CHARS
"""What a row has that shows no trade of its own: older than any trade's version."""


def encode_version(time_us: int, seq: int, position: int) -> bytes:
    """Encode an order as text: greater text is newer.

    Fixed width, so bytes compare as the numbers do, in Lua too, where a number
    above 2^53 would be rounded.
    """
    return b"%016d%019d%019d" % (time_us, seq, position)


def decode_version(version: bytes) -> tuple[int, int, int]:
    """Return time, seq and position of what ``encode_version`` wrote."""
    return int(version[:16]), int(version[16:35]), int(version[35:])


def is_newer(version: bytes, known: bytes | None) -> bool:
    """Tell whether a version is newer than the one known; any is newer than None."""
    return known is None or version > known
