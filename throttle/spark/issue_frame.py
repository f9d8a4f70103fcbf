"""The issue table as a DataFrame that is broadcast, made once per version."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ingest.issue_table.known_issues import Issues
from throttle.window.issue_columns import NO_ISSUES, IssueColumns


class IssueFrame:
    """Keeps the columns and the frame of the newest table."""

    def __init__(self) -> None:
        self._columns = NO_ISSUES
        self._frame: DataFrame | None = None

    def of(
        self, spark: SparkSession, issues: Issues
    ) -> tuple[IssueColumns, DataFrame | None]:
        """Return the columns of a table, and the frame to be joined as a broadcast.

        Without a table, which is one of version 0, there is no frame.
        """
        if issues is not self._columns.issues:
            self._columns, self._frame = IssueColumns(issues), None
            if issues.version:
                frame = spark.createDataFrame(self._columns.places)
                self._frame = F.broadcast(frame)
        return self._columns, self._frame
