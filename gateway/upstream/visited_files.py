"""Files of an archive, each noted in the visit for which it is opened."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from archive.parquet.changing_files import ChangingFiles
from gateway.upstream.archive_visit import current_visit


class VisitedFiles(ChangingFiles):
    """Files that are not read for somebody who has gone. Methods raise VisitOver."""

    @contextmanager
    def skipping_damage(self, path: Path) -> Iterator[None]:
        """Read a file of a segment in this block, which ends where it is damaged."""
        current_visit().note_file()
        with super().skipping_damage(path):
            yield
