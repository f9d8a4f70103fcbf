"""The chain of a stream, as ``tickthrottle verify`` checks it."""

import redis

from throttle.audit.chain_audit import ChainAudit, ChainReport
from throttle.audit.published import PublishedHistory


def audit_chain(client: redis.Redis) -> ChainReport:
    """Return what an audit of the window log and the books finds."""
    history = PublishedHistory(client, "tt")
    newest, audit = history.chain_end(), ChainAudit()
    for window in history.audited_windows(0, 2**53):
        audit.look_at(window)
    audit.end(newest)
    for job in history.jobs():
        audit.compare_books(history.batches(job))
    return audit.report


def check_chain(client: redis.Redis) -> None:
    """Fail where the chain of the window log does not hold."""
    report = audit_chain(client)
    assert report.windows == 0 or report.is_right, report.breaks
