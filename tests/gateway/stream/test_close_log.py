"""How connections end: counted, and told without flooding the log."""

from structlog.testing import capture_logs

from gateway.stream.close_log import LINES_PER_S, CloseLog
from tickthrottle_client.tick_v1 import CloseCode


def test_a_connection_that_we_close_is_one_line_with_code_and_reason() -> None:
    """Whoever has the id from the client's welcome finds the line."""
    close_log = CloseLog()
    with capture_logs() as logs:
        close_log.by_us("c-1a2b3c4d", CloseCode.SLOW, "nothing was read for 15 s", 0.0)
        close_log.by_us(None, CloseCode.OVERLOADED, "too many", 0.5)
    assert logs == [
        {
            "event": "connection closed",
            "log_level": "info",
            "connection": "c-1a2b3c4d",
            "code": 4408,
            "reason": "nothing was read for 15 s",
        },
        {
            "event": "connection closed",
            "log_level": "info",
            "code": 1013,
            "reason": "too many",
        },
    ]
    assert close_log.counts["gateway", "4408"] == 1


def test_of_many_at_once_one_line_tells() -> None:
    """A stop with thousands of clients, or an attack, does not fill the disk."""
    close_log = CloseLog()
    with capture_logs() as logs:
        for _ in range(1_000):
            close_log.by_us("c-1", CloseCode.RESTART, "planned stop", 7.2)
        close_log.tell_rest()
        close_log.tell_rest()
        close_log.by_us("c-2", CloseCode.SLOW, "slow", 8.0)
    events = [entry["event"] for entry in logs]
    assert events[:LINES_PER_S] == ["connection closed"] * LINES_PER_S
    assert events[LINES_PER_S:] == ["connections closed", "connection closed"]
    rest = 1_000 - LINES_PER_S
    assert logs[LINES_PER_S]["count"] == rest
    assert logs[LINES_PER_S]["codes"] == {"1012": rest}
    assert close_log.counts["gateway", "1012"] == 1_000


def test_what_code_a_client_makes_up_is_not_told_apart() -> None:
    """Otherwise any client could add series without end."""
    close_log = CloseLog()
    before = set(close_log.counts)
    for code in (1000, 1006, 3000, 4999, 4408):
        close_log.by_client(code)
    assert set(close_log.counts) - before == {("client", "other")}
    assert close_log.counts["client", "other"] == 3
    assert close_log.counts["client", "1000"] == 1
