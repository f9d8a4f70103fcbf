"""A TLS connection that is given up while it is being made is no error.

uvloop answers what the server still sends on it with "Fatal error on SSL protocol" and
a stack trace, although whoever gave it up has said so already.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

_WORDS = "the handler is closed"


def ignore_abandoned_handshakes() -> None:
    """Have the running loop say nothing about them, and everything else as before."""
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if _is_abandoned_handshake(context):
            return
        if before is None:
            loop.default_exception_handler(context)
        else:
            before(loop, context)

    loop.set_exception_handler(handle)


def _is_abandoned_handshake(context: Mapping[str, Any]) -> bool:
    error = context.get("exception")
    return (
        isinstance(error, RuntimeError)
        and _WORDS in str(error)
        and "SSL" in context.get("message", "")
    )
