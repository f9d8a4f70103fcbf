"""Files of an archive, each noted in the visit for which it is opened."""

from pathlib import Path

import pyarrow as pa

from archive.parquet.changing_files import ChangingFiles
from gateway.upstream.archive_visit import current_visit


class VisitedFiles(ChangingFiles):
    """Files that are not read for somebody who has gone. Methods raise VisitOver."""

    def rows_of_issue(
        self, path: Path, isin: str, columns: list[str] | None = None
    ) -> pa.Table | None:
        """Return an issue's rows of a file, None where it cannot have any."""
        current_visit().note_file()
        return super().rows_of_issue(path, isin, columns)
