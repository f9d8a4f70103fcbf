"""Has the issue table know what a feed's issues are called."""

from collections.abc import Sequence
from contextlib import closing

import structlog
from redis import RedisError

from ingest.issue_table.issue_entry import BadIssues, IssueEntry
from ingest.issue_table.issue_store import TableAway, TableMoved
from ingest.issue_table.open_issue_store import open_issue_store
from ingest.issue_table.table_loader import add_issues
from ingest.settings import IngestSettings
from ingest.tradelog.contract import LogUnusable

log = structlog.get_logger()


def tell_names(
    settings: IngestSettings,
    listed: Sequence[IssueEntry],
    guessed: Sequence[IssueEntry] = (),
) -> None:
    """Add a feed's issues to the table, if ``list_issues`` says so.

    ``guessed`` ones, which no list names, only fill in what the table does not say.
    Trades come first: a feed goes on without the table, and says so.
    """
    if not settings.list_issues:
        return
    try:
        with closing(open_issue_store(settings)) as store:
            loaded = add_issues(store, listed, guessed)
    except (TableAway, TableMoved, LogUnusable, BadIssues, RedisError) as error:
        log.warning("the issue table was not told the names", error=str(error))
        return
    news = loaded.added + loaded.changed
    if news:
        log.info("the issue table was told the names", issues=news)
