"""Of a loop's errors one is none: a TLS connection that was given up."""

import asyncio
from typing import Any

import pytest
import uvloop

from ingest.process.abandoned_handshake import ignore_abandoned_handshakes

CLOSED = RuntimeError(
    "unable to perform operation on <TCPTransport closed=True>; the handler is closed"
)


@pytest.mark.parametrize(
    ("message", "error", "is_told"),
    [
        ("Fatal error on SSL protocol", CLOSED, False),
        ("Fatal error on SSL protocol", ValueError("x"), True),
        ("Fatal error on transport", CLOSED, True),
    ],
    ids=["abandoned", "another-error", "without-tls"],
)
@pytest.mark.parametrize("has_handler", [True, False])
def test_only_an_abandoned_handshake_is_not_told(
    message: str,
    error: Exception,
    is_told: bool,
    has_handler: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """All else goes where it went before."""
    handled: list[dict[str, Any]] = []

    async def fail() -> None:
        loop = asyncio.get_running_loop()
        if has_handler:
            loop.set_exception_handler(lambda _, context: handled.append(context))
        ignore_abandoned_handshakes()
        loop.call_exception_handler({"message": message, "exception": error})

    uvloop.run(fail())
    logged = [record for record in caplog.records if message in record.message]
    assert bool(handled if has_handler else logged) is is_told
