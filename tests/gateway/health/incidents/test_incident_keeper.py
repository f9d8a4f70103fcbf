"""Incidents in a file: what it holds, and what happens when it cannot be used."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from gateway.health.findings import Finding
from gateway.health.incidents.incident_keeper import (
    MAX_FILE_BYTES,
    IncidentKeeper,
    read_incidents,
)
from tests.gateway.health.incidents.test_incident_book import make_finding


async def look() -> Sequence[Finding]:
    """See what is wrong."""
    return [make_finding("redis_down")]


async def look_once(keeper: IncidentKeeper) -> None:
    """Run until an incident is known, and written if it can be."""
    task = asyncio.create_task(keeper.run())
    for _ in range(10):
        await asyncio.sleep(0)
    [incident] = keeper.incidents()
    assert await keeper.note(incident.id, "wait")
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def test_a_file_outlives_the_keeper(tmp_path: Path) -> None:
    """Another keeper has the same incidents, with their notes."""
    file = tmp_path / "incidents.json"
    assert read_incidents(file) == []
    keeper = IncidentKeeper(file, look)
    asyncio.run(look_once(keeper))
    [incident] = keeper.incidents()
    assert (incident.code, incident.note) == ("redis_down", "wait")
    assert IncidentKeeper(file, look).incidents() == [incident]


@pytest.mark.parametrize("content", [b"", b"[{}]", b"{", b" " * (MAX_FILE_BYTES + 1)])
def test_a_file_that_holds_something_else_is_left_alone(
    tmp_path: Path, content: bytes
) -> None:
    """It is said once; the incidents are in memory then."""
    file = tmp_path / "mine.txt"
    file.write_bytes(content)
    with capture_logs() as lines:
        keeper = IncidentKeeper(file, look)
        asyncio.run(look_once(keeper))
    assert [line["event"] for line in lines] == ["incidents are kept in memory alone"]
    assert lines[0]["error"] == f"incidents_file {file}: is no list of incidents"
    assert file.read_bytes() == content
    assert len(keeper.incidents()) == 1


def test_a_folder_that_is_gone_is_told_once(tmp_path: Path) -> None:
    """Incidents go on in memory."""
    keeper = IncidentKeeper(tmp_path / "none" / "incidents.json", look)
    with capture_logs() as lines:
        asyncio.run(look_once(keeper))
    told = [(line["event"], line["error"]) for line in lines]
    assert told == [("incidents cannot be stored", "No such file or directory")]
