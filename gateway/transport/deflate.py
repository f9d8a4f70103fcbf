"""Compression of frames, once for all clients that are sent the same (RFC 7692).

Every frame is compressed on its own: what is shared by all cannot build on what each
of them was sent before. Negotiated is therefore "no context takeover"; a connection
that kept its context would decode later messages to wrong bytes without an error.
"""

import zlib
from functools import lru_cache

from websockets.extensions.permessage_deflate import (
    PerMessageDeflate,
    ServerPerMessageDeflateFactory,
)
from websockets.server import ServerProtocol

WINDOW_BITS = 12
"""Rows are a hundred bytes and alike: a window of 4 KiB sees dozens of them."""

MIN_BYTES = 1_024
"""Shorter frames are sent as they are."""

SHARED_FRAMES = 64
"""Compressed frames that are kept for the next client that is due the same."""

_TAIL = b"\x00\x00\xff\xff"


def offer_compression(connection: ServerProtocol) -> None:
    """Have a connection agree to compression if its client asks for it."""
    connection.available_extensions = [
        ServerPerMessageDeflateFactory(
            server_no_context_takeover=True,
            client_no_context_takeover=True,
            server_max_window_bits=WINDOW_BITS,
            client_max_window_bits=WINDOW_BITS,
        )
    ]


def takes_shared_frames(connection: ServerProtocol) -> bool:
    """Say whether compression was agreed on, with a window as large as ours."""
    return any(
        isinstance(extension, PerMessageDeflate)
        and extension.local_max_window_bits >= WINDOW_BITS
        for extension in connection.extensions
    )


@lru_cache(maxsize=SHARED_FRAMES)
def deflate(payload: bytes) -> bytes:
    """Compress the payload of one frame."""
    compressor = zlib.compressobj(wbits=-WINDOW_BITS)
    data = compressor.compress(payload) + compressor.flush(zlib.Z_SYNC_FLUSH)
    return data.removesuffix(_TAIL)
