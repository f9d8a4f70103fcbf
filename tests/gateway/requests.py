"""Requests without a server, for what reads them."""

import asyncio

from fastapi import Request
from starlette.types import Message


def make_request(gone: asyncio.Event | None = None) -> Request:
    """Return a GET whose client stays, or goes when ``gone`` is set."""
    gone = gone or asyncio.Event()

    async def receive() -> Message:
        await gone.wait()
        return {"type": "http.disconnect"}

    return Request({"type": "http", "method": "GET", "headers": []}, receive)
