"""Which of an instrument's trades is newer: the one of the greater version. Pure.

A trade's own version is ``(time, seq)`` (``Trade.version``); the position in the log
decides between equal ones. Columns are sorted by ``ORDER``; everything else (rows, the
last-value table, the publish script, the gateway's board) compares the version as text.

Where the trade that is shown is taken back (``throttle/standing``), the instrument's
``revision`` is raised, and its version begins with that: what is shown then is newer
than anything before, though its trade is older. This is the one step back there is.
"""

from collections.abc import Container

ORDER = ("time", "seq", "position")
"""The columns that decide, the first one first."""

REVISION_CHARS = 4
"""So many characters of a version say how often a trade that was shown was taken back.
"""

MOST_REVISIONS = 10**REVISION_CHARS - 1
"""As often an instrument can step back."""

VERSION_CHARS = REVISION_CHARS + 54
"""Length of a version as text."""

NO_VERSION = b"0" * VERSION_CHARS
"""What a row has that shows no trade of its own: older than any trade's version."""


def encode_version(time_us: int, seq: int, position: int, revision: int = 0) -> bytes:
    """Encode an order as text of a fixed width: greater text is newer, in Lua, too."""
    return b"%04d%016d%019d%019d" % (revision, time_us, seq, position)


def decode_version(version: bytes) -> tuple[int, int, int]:
    """Return time, seq and position of what ``encode_version`` wrote."""
    trade = version[REVISION_CHARS:]
    return int(trade[:16]), int(trade[16:35]), int(trade[35:])


def is_newer(version: bytes, known: bytes | None) -> bool:
    """Tell whether a version is newer than the one known; any is newer than None."""
    return known is None or version > known


def as_shown(version: bytes, known: bytes, gone: Container[bytes] = ()) -> bytes:
    """Return a trade's version among those of its instrument, of which one is known.

    ``known`` is the newest one, empty if there is none. If that trade is ``gone`` (its
    version without revision) and newer, the revision is raised, as long as it can be.
    """
    revision = known[:REVISION_CHARS] or b"0" * REVISION_CHARS
    shown = revision + version[REVISION_CHARS:]
    if shown > known or known[REVISION_CHARS:] not in gone:
        return shown
    raised = min(int(revision) + 1, MOST_REVISIONS)
    return b"%04d%b" % (raised, version[REVISION_CHARS:])
