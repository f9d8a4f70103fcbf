"""Settings of every process: where a user without a home has what others have there."""

import pwd
from pathlib import Path

import pytest
from pydantic import ValidationError

from archive.settings import ArchiveSettings
from ingest.process.redact import problems_of
from ingest.settings import TopicSettings, home_folder
from throttle.settings import ThrottleSettings


def test_a_user_without_a_home_can_start_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As one of systemd's that exists only while a unit runs: no entry, no HOME."""

    def unknown(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert home_folder() == Path("/")
    assert ThrottleSettings().state_dir == Path("/.local/state/tickthrottle")
    assert ArchiveSettings().archive_dir == Path("/.local/state/tickthrottle/archive")


def test_others_have_it_in_their_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Wherever that is."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert ThrottleSettings().state_dir.is_relative_to(tmp_path)


def test_the_address_of_redis_may_be_in_a_file(tmp_path: Path) -> None:
    """So that its password stands in no environment."""
    file = tmp_path / "url"
    file.write_text("redis://tt-job:s3cret@redis:6379/0\n")
    settings = TopicSettings(redis_url=f"file://{file}")
    assert settings.redis_url == "redis://tt-job:s3cret@redis:6379/0"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "the file cannot be read: No such file or directory"),
        (b"\xff", "the file cannot be read: it is no text"),
        (b"redis://u:s3cret@redis/x", "the database must be a number"),
    ],
    ids=["no file", "no text", "no address"],
)
def test_a_file_without_an_address_is_named(
    tmp_path: Path, content: bytes | None, why: str
) -> None:
    """And nothing of what is in it."""
    file = tmp_path / "url"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ValidationError) as refused:
        TopicSettings(redis_url=f"file://{file}")
    said = problems_of(refused.value)
    assert str(file) in said
    assert why in said
    assert "s3cret" not in said
