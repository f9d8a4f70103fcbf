"""Bounds of a gateway's connections that nobody has to choose. Pure.

Those that depend on a machine, or on who its clients are, are settings.
"""

from dataclasses import dataclass

MAX_MESSAGE_BYTES = 65_536
"""Largest message a client may send; a larger one closes with 1009."""

MAX_REQUEST_BYTES = 65_536
"""Largest request, head and body; a larger one is refused with 431 or 413."""

MOST_WINDOWS = 20
"""Most windows one REST request may ask for."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one connection may take; tests shorten it."""

    first_keys_s: float = 30.0
    """A stream that has asked for nothing after so many seconds is closed with 1008."""

    auth_s: float = 5.0
    """A stream without a token after so many seconds is closed with 4501."""

    slow_close_s: float = 15.0
    """A client that takes not a single byte for so many seconds is closed with 4408."""

    max_stream_s: float = 86_400.0
    """A stream that is about so many seconds old is closed with 1012, after a notice.
    """

    request_s: float = 10.0
    """A connection that takes more seconds to send a request is cut."""

    snapshot_items: int = 500
    """Most items in one piece of a snapshot."""

    answer_bytes: int = 67_108_864
    """Most bytes of long answers that are on their way, each body counted once."""

    loop_lag_s: float = 0.5
    """A process that is late by more seconds, for 2 s, takes no more streams."""

    firehose_viewers: int = 4
    """Most viewers of a worker's firehose; one more is answered with 503."""


BOUNDS = Bounds()
"""The bounds of every gateway."""
