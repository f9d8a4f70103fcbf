"""Files of an archive, each noted in the visit for which it is opened."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from archive.parquet.changing_files import ChangingFiles
from gateway.admission.loop_turns import current_share
from gateway.upstream.archive_visit import current_visit


class VisitedFiles(ChangingFiles):
    """Files that are not read for somebody who has gone. Methods raise VisitOver."""

    @contextmanager
    def skipping_damage(self, path: Path) -> Iterator[None]:
        """Read a file of a segment in this block, which ends where it is damaged."""
        current_visit().note_file()
        with super().skipping_damage(path):
            yield

    def rows_of_instrument(self, path: Path, isin: str) -> pa.Table | None:
        """Return an instrument's rows of a file, after a rest as long as the work was.

        The thread shares the interpreter with the event loop.
        """
        began_s = time.thread_time()
        rows = super().rows_of_instrument(path, isin)
        worked_s = time.thread_time() - began_s
        share = current_share()
        time.sleep(share.rest_s(worked_s) if share else worked_s)
        return rows
