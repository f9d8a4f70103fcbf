"""The command that checks the chain: of the window log, an archive, a gateway."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from archive.parquet.segment_folder import all_segments
from tests.archive.rig import archiving, settings_of, wait_until_stored
from tests.cli.running import run
from tests.doc_pages import blocks_in, section_of
from tests.gateway.servers import running_gateway
from throttle.testing.driver import START_MS, ThrottleDriver

pytestmark = pytest.mark.redis
W = 2_000
A, B = "KR7005930003", "KR7000660001"
WINDOWS = 6


@pytest.fixture
def driver(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[ThrottleDriver]:
    """A job that has published six windows; the third is quiet."""
    monkeypatch.setenv("REDIS_URL", redis_url)
    with ThrottleDriver(redis_url=redis_url) as started:
        for n in range(WINDOWS):
            for isin in (A, B)[: 1 + n % 2] if n != 2 else ():
                started.trade(isin, f"{n + 1}.50", at_ms=n * W + 10, side="B")
            started.turn_clock((n + 1) * W)
        yield started


def report(*arguments: str) -> dict[str, Any]:
    result = run("verify", *arguments, "--json")
    assert result.stdout, result.stderr
    told: dict[str, Any] = json.loads(result.stdout)
    return told


def alter(client: redis.Redis, offset: int, old: bytes, new: bytes) -> None:
    """Change a window of the log, and leave its place."""
    entries: Any = client.xrange("tt:windows")
    client.delete("tt:windows")
    for entry_id, fields in entries:
        if entry_id == b"%d-0" % offset:
            assert old in fields[b"snapshot"]
            fields[b"snapshot"] = fields[b"snapshot"].replace(old, new)
        client.xadd("tt:windows", fields, entry_id)


def test_a_stream_that_holds_says_what_was_traded(driver: ThrottleDriver) -> None:
    """Windows, sums, batches whose books agree, and the hash to keep."""
    result = run("verify")
    assert result.exit_code == 0
    first, books, verdict = result.stdout.splitlines()
    assert first == "6 windows, 8 trades, volume 8, value 34"
    assert books == "6 batches whose books agree or are named below"
    last = report()["last"]
    assert verdict == f"holds up to {last['epoch']} 6 {last['hash']}"
    _, shown = blocks_in(section_of("docs/inspecting.md", "Verify"), "")
    form = re.compile(r"(?<=holds up to ).+|\d[\d,]*")
    assert form.sub("0", shown) == form.sub("0", result.stdout)


def test_a_range_is_checked_by_itself(driver: ThrottleDriver) -> None:
    told = report("--from", str(START_MS + 2 * W), "--to", str(START_MS + 4 * W))
    assert (told["windows"], told["holds"]) == (3, True)
    assert (told["first"]["offset"], told["last"]["offset"]) == (2, 4)
    assert run("verify", "--to", str(START_MS)).exit_code == 3


def test_a_window_that_was_altered_is_named(
    driver: ThrottleDriver, client: redis.Redis
) -> None:
    """With its end and what is wrong; the exit code is 1."""
    alter(client, 4, b'"price":4.50', b'"price":4.51')
    result = run("verify")
    assert result.exit_code == 1
    _, _, first, *_, verdict = result.stdout.splitlines()
    assert first.startswith("altered: offset 4 of epoch ")
    assert "the window 2026-03-20T00:00:08.000Z: it is not as it was wr" in first
    assert verdict == "broken"
    assert report()["breaks"][0]["kind"] == "altered"


def test_an_archive_is_checked_file_by_file(
    driver: ThrottleDriver, client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    """It has the chain of the stream; a byte that is flipped in a file is named.

    What left the log before the archive began is not missing.
    """
    client.xdel("tt:windows", "1-0")
    with archiving(settings_of(redis_url, tmp_path)):
        wait_until_stored(client, WINDOWS)
    chain = report("--archive-dir", str(tmp_path))
    assert chain["holds"]
    assert chain["last"] == report()["last"]
    assert chain["notes"][0].startswith("1 windows of epoch")
    for name in ("windows.parquet", "rows.parquet"):
        _, folder = all_segments(tmp_path)[-1]
        file = folder / name
        whole = file.read_bytes()
        flipped = bytearray(whole)
        flipped[len(flipped) // 3] ^= 1
        file.write_bytes(bytes(flipped))
        result = run("verify", "--archive-dir", str(tmp_path))
        assert result.exit_code == 1
        assert str(file) in result.stdout
        file.write_bytes(whole)
    assert run("verify", "--archive-dir", str(tmp_path / "none")).exit_code == 3


def test_what_a_gateway_tells_is_checked(
    driver: ThrottleDriver, client: redis.Redis, redis_url: str
) -> None:
    with running_gateway(redis_url) as gateway:
        url = f"http://127.0.0.1:{gateway.port}"
        told = report("--gateway", url)
        assert (told["windows"], told["holds"]) == (WINDOWS, True)
        assert told["last"] == report()["last"]
        alter(client, 4, b'"price":4.50', b'"price":4.51')
        driver.trade(A, "9", at_ms=WINDOWS * W + 10)
        driver.turn_clock((WINDOWS + 1) * W)
        told = report("--gateway", url)
    # Of one trade the price is a part of the sums, too.
    assert {one["offset"] for one in told["breaks"]} == {4}
    assert (
        "no gateway answers" in run("verify", "--gateway", "http://127.0.0.1:1").stderr
    )


def test_options_that_do_not_go_together_are_refused(
    driver: ThrottleDriver, tmp_path: Path
) -> None:
    result = run(
        "verify", "--archive-dir", str(tmp_path), "--gateway", "http://127.0.0.1:1"
    )
    assert result.exit_code == 2
    assert "archive-dir, gateway: one of them at a time" in result.stderr
    assert run("verify", "--from", "late").exit_code == 2
