"""The issue table as a DataFrame that is broadcast, made once per version."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ingest.issue_table.known_issues import Issues
from throttle.window.issue_columns import issue_columns


class IssueFrame:
    """Keeps the frame of the newest table."""

    def __init__(self) -> None:
        self._issues: Issues | None = None
        self._frame: DataFrame | None = None

    def of(self, spark: SparkSession, issues: Issues) -> DataFrame:
        """Return the frame of a table, to be joined as a broadcast."""
        if self._frame is None or issues is not self._issues:
            frame = spark.createDataFrame(issue_columns(issues))
            self._issues, self._frame = issues, F.broadcast(frame)
        return self._frame
