"""What the archive says of itself, of files and of a database."""

from archive.describe import archive_parts
from archive.settings import ArchiveSettings


def test_files_are_told_with_their_folder_and_how_they_merge() -> None:
    """And with what is read, and where it says how far it is."""
    archive, settings = archive_parts(ArchiveSettings(namespace="ns", archive_days=7))
    told = dict(archive.items)
    assert told["windows from"] == "ns:windows"
    assert told["bars from"] == "ns:analytics:bars:log"
    assert told["place"] == str(ArchiveSettings().archive_dir)
    assert "last millisecond" in told["day of a window or bar"]
    assert "merged" in told["merges"]
    assert "TICKTHROTTLE_ARCHIVE_DAYS = 7" in dict(settings.items)


def test_a_database_is_told_without_its_password() -> None:
    url = "postgresql://me:secret@somewhere/db"
    parts = list(archive_parts(ArchiveSettings(postgres_url=url)))
    assert "secret" not in str(parts)
    told = dict(parts[0].items)
    assert "somewhere" in told["place"]
    assert "merges" not in told
