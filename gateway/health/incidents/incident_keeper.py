"""Keeps the incidents, in memory or in a file that outlives the gateway."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import NoReturn

import orjson
import structlog
from pydantic import TypeAdapter, ValidationError

from gateway.health.findings import Finding
from gateway.health.incidents.incident_book import KEPT, Incident, IncidentBook

LOOK_S = 5.0
"""How often somebody looks, whether or not anybody asks."""

MAX_FILE_BYTES = KEPT * 8_192
"""A file that is larger is none of ours: an incident's texts are cut."""

_INCIDENTS = TypeAdapter(list[Incident])

log = structlog.get_logger()


class IncidentKeeper:
    """Looks at the findings until it is cancelled, and keeps the incidents.

    ``look`` says what is wrong. ``file`` is read at once and written after each change,
    whole, so that it is the one or the other at any moment. Without a file they are in
    memory alone, until the process ends. A file that cannot be read is left as it is,
    and said so once.
    """

    def __init__(
        self, file: Path | None, look: Callable[[], Awaitable[Sequence[Finding]]]
    ) -> None:
        self._file = file
        self._look = look
        try:
            self._book = IncidentBook.of([] if file is None else read_incidents(file))
        except ValueError as error:
            # Prices are worth more than the list of what was wrong yesterday.
            log.warning("incidents are kept in memory alone", error=str(error))
            self._book, self._file = IncidentBook(), None
        self._is_refused = False
        self._writes = asyncio.Lock()

    def incidents(self) -> list[Incident]:
        """Return all that is remembered: what lasts first, then the newest first."""
        return self._book.incidents()

    async def note(self, incident_id: str, text: str) -> bool:
        """Write down what was done; False if there is no such incident."""
        is_known = self._book.note(incident_id, text)
        if is_known:
            await self._store()
        return is_known

    async def run(self) -> NoReturn:
        """Look again and again."""
        while True:
            findings = await self._look()
            if self._book.observe(findings, time.time_ns() // 1_000_000):
                await self._store()
            await asyncio.sleep(LOOK_S)

    async def _store(self) -> None:
        if self._file is None:
            return
        try:
            async with self._writes:
                body = orjson.dumps(self._book.incidents(), option=orjson.OPT_INDENT_2)
                await asyncio.to_thread(_replace, self._file, body)
            self._is_refused = False
        except OSError as error:
            if not self._is_refused:
                reason = error.strerror or str(error)
                log.warning("incidents cannot be stored", error=reason)
            self._is_refused = True


def read_incidents(file: Path) -> list[Incident]:
    """Read a file of incidents; none if there is no such file.

    Raises ValueError with one sentence if it cannot be read, or holds something else.
    """
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise ValueError(f"incidents_file {file}: is no list of incidents")
        return _INCIDENTS.validate_json(file.read_bytes())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ValueError(f"incidents_file {file}: {error.strerror}") from None
    except ValidationError:
        raise ValueError(f"incidents_file {file}: is no list of incidents") from None


def _replace(file: Path, body: bytes) -> None:
    fresh = file.with_name(f"{file.name}.new")
    with fresh.open("wb") as stream:
        stream.write(body)
        stream.flush()
        os.fsync(stream.fileno())
    fresh.replace(file)
