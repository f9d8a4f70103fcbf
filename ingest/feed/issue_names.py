"""Has the issue table know what a feed's issues are called."""

from contextlib import closing

import structlog
from redis import RedisError

from ingest.issue_table.issue_entry import BadIssues
from ingest.issue_table.issue_list import IssueList
from ingest.issue_table.issue_store import TableAway, TableMoved
from ingest.issue_table.open_issue_store import open_issue_store
from ingest.issue_table.table_loader import update_table
from ingest.settings import IngestSettings
from ingest.tradelog.contract import LogUnusable

log = structlog.get_logger()


def tell_names(settings: IngestSettings, listed: IssueList) -> None:
    """Add a feed's issues to the table, if ``list_issues`` says so.

    Trades come first: a feed goes on without the table, and says so.
    """
    if not settings.list_issues:
        return
    try:
        with closing(open_issue_store(settings)) as store:
            loaded = update_table(store, listed)
    except (TableAway, TableMoved, LogUnusable, BadIssues, RedisError) as error:
        log.warning("the issue table was not told the names", error=str(error))
        return
    news = loaded.added + loaded.changed
    if news:
        log.info("the issue table was told the names", issues=news)
