"""A day of the archive is played again, and a client sees what was published."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from typer.testing import CliRunner

from archive.contract.segment import day_of, span_of
from archive.parquet.archive_reader import ArchiveReader
from archive.playback import PlaybackRefused, Played, play
from cli.command_line import app
from tests.archive.rig import archiving, publish, settings_of, wait_until_stored
from tests.conftest import eventually
from tests.gateway.publisher import Publisher
from tests.gateway.samples import FIRST_WINDOW, SAMSUNG, make_row
from tests.gateway.servers import running_gateway
from tests.published import read_snapshots
from throttle.contract.snapshot import WindowSnapshot

pytestmark = pytest.mark.redis
DAY = day_of(FIRST_WINDOW)


@pytest.fixture
def folder(client: redis.Redis, redis_url: str, tmp_path: Path) -> Path:
    """An archive of a day with two epochs, a quiet window and a hole."""
    publisher = Publisher(client)
    publish(publisher, 5)
    publisher.publish()
    publisher.epoch = "second"
    publish(publisher, 3)
    row = make_row(SAMSUNG, "0.30", 99)._replace(sums=b"7,90,31.5,0.45,0.3")
    publisher.publish(row)
    folder = tmp_path / "archive"
    with archiving(settings_of(redis_url, folder)):
        wait_until_stored(client, 10)
    return folder


def play_all(
    folder: Path, client: redis.Redis, namespace: str = "replay", speed: float = 50
) -> Played:
    reader, stop = ArchiveReader(folder), threading.Event()
    return play(reader, client, namespace, span_of(DAY), speed, None, stop)


def test_what_is_played_is_what_was_published(
    folder: Path, client: redis.Redis
) -> None:
    """Windows, offsets, rows and their order; only epochs have other names."""
    assert play_all(folder, client) == Played(10, 25)
    first = read_snapshots(client)
    again = read_snapshots(client, "replay")
    assert [s.rows for s in again] == [s.rows for s in first]
    assert [(s.offset, s.window) for s in again] == [
        (s.offset, s.window) for s in first
    ]
    epochs = [s.epoch for s in again]
    assert len(set(epochs)) == 2
    assert not {s.epoch for s in first} & set(epochs)
    # A second time, in the place of the first.
    play_all(folder, client)
    assert len(read_snapshots(client, "replay")) == 10
    assert read_snapshots(client, "replay")[0].epoch not in epochs


def test_a_client_sees_what_was_published(
    client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    """Through a gateway that follows the namespace: every row of every window, once.

    The first window makes the stream known; it comes as a snapshot.
    """
    publisher = Publisher(client)
    publish(publisher, 4)
    publisher.publish(make_row(SAMSUNG, "0.30", 99, 7))
    publish(publisher, 4)
    with archiving(settings_of(redis_url, tmp_path / "one")):
        wait_until_stored(client, 9)
    published = {
        s.window: [(r.isin, r.trades, r.body) for r in s.rows]
        for s in read_snapshots(client)
    }
    seen: dict[int, list[tuple[str, int, bytes]]] = {}
    with (
        running_gateway(redis_url, namespace="replay") as gateway,
        gateway.stream("?keys=*") as stream,
    ):
        reader = GatedReader(tmp_path / "one")
        arguments = reader, client, "replay", span_of(DAY), 1e6, None
        playing = threading.Thread(
            daemon=True, target=play, args=(*arguments, threading.Event())
        )
        playing.start()
        reader.gate.release()
        while max(seen, default=0) < max(published):
            frame = json.loads(stream.raw(30), parse_float=Literal)
            if frame["type"] == "update" or frame.get("data"):
                assert frame.get("merged", 1) == 1
                assert frame["window"] not in seen
                seen[frame["window"]] = [split(item) for item in frame["data"]]
                reader.gate.release()
        playing.join()
    first = min(published)
    assert [row[::2] for row in seen.pop(first)] == [
        row[::2] for row in published.pop(first)
    ]
    assert seen == published


class GatedReader(ArchiveReader):
    """Has a window played when the one before was seen: no machine is too slow."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.gate = threading.Semaphore(0)

    def windows(self, *bounds: int, **options: bool) -> Iterator[WindowSnapshot]:
        for window in super().windows(*bounds, **options):
            self.gate.acquire()
            yield window


class Literal(str):
    """A number with its digits."""


def split(item: dict[str, Any]) -> tuple[str, int, bytes]:
    """Return an item's instrument, its trades, and the rest as it was published."""
    trades = item.pop("trades")
    for name in ("volume", "value", "high", "low"):
        item.pop(name, None)
    texts = {
        name: value if isinstance(value, Literal) else json.dumps(value)
        for name, value in item.items()
    }
    pairs = (f'"{name}":{text}' for name, text in texts.items())
    return item["isin"], trades, ("{" + ",".join(pairs) + "}").encode()


def test_a_live_stream_is_not_played_over(folder: Path, client: redis.Redis) -> None:
    """A namespace that somebody publishes to is refused."""
    with pytest.raises(PlaybackRefused, match="namespace tt: has a stream already"):
        play_all(folder, client, namespace="tt")
    assert len(read_snapshots(client)) == 10


def test_the_command_plays_a_day(
    folder: Path,
    client: redis.Redis,
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And says what it does; what cannot be played is one sentence."""
    monkeypatch.setenv("REDIS_URL", redis_url)

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(app, ["replay", *arguments])

    monkeypatch.setenv("TICKTHROTTLE_ARCHIVE_DIR", str(folder))
    where = "--speed", "1000"
    done = run("--archive", DAY.isoformat(), *where)
    assert done.exit_code == 0, done.stderr
    assert "TICKTHROTTLE_NAMESPACE=replay tickthrottle gateway" in done.stdout
    assert "played 10 windows, 25 rows" in done.stdout
    for arguments, code, words in (
        (("--archive", "1999-12-31", *where), 3, "has no window of this day"),
        (("--archive", "yesterday", *where), 2, "must be a day such as 2026-03-20"),
        (("--archive", DAY.isoformat(), "--into", "tt", *where), 2, "the live stream"),
        (("--archive", DAY.isoformat(), "tape.csv"), 2, "only one of them"),
        ((), 2, "name one, or a day of the archive"),
    ):
        refused = run(*arguments)
        assert (refused.exit_code, words in refused.stderr) == (code, True), arguments


def test_playing_keeps_the_pace(folder: Path, client: redis.Redis) -> None:
    """Told to stop in the middle of a pause, it ends there."""
    stop = threading.Event()
    ends: list[Played] = []

    def run() -> None:
        reader = ArchiveReader(folder)
        ends.append(play(reader, client, "replay", span_of(DAY), 0.001, None, stop))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        eventually(lambda: read_snapshots(client, "replay"))
    finally:
        stop.set()
        thread.join()
    assert ends == [Played(1, 3)]


def test_a_long_wait_is_told_when_it_begins(folder: Path, client: redis.Redis) -> None:
    waits: list[float] = []
    stop = threading.Event()

    def told(wait_s: float) -> None:
        waits.append(wait_s)
        stop.set()

    reader = ArchiveReader(folder)
    played = play(
        *(reader, client, "replay", span_of(DAY), 0.001, None, stop),
        told_wait=told,
    )
    assert played.windows == 1
    assert waits == [2_000]
