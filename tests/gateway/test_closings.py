"""How connections end: counted, and told without flooding the log."""

from structlog.testing import capture_logs

from gateway.closings import LINES_PER_S, Closings
from gateway.protocol import CloseCode


def test_a_connection_that_we_close_is_one_line_with_code_and_reason() -> None:
    """Whoever has the id from the client's welcome finds the line."""
    closings = Closings()
    with capture_logs() as logs:
        closings.by_us("c-1a2b3c4d", CloseCode.SLOW, "nothing was read for 15 s", 0.0)
        closings.by_us(None, CloseCode.OVERLOADED, "too many", 0.5)
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
    assert closings.counts["gateway", "4408"] == 1


def test_of_many_at_once_one_line_tells() -> None:
    """A stop with thousands of clients, or an attack, does not fill the disk."""
    closings = Closings()
    with capture_logs() as logs:
        for _ in range(1_000):
            closings.by_us("c-1", CloseCode.RESTART, "planned stop", 7.2)
        closings.tell_rest()
        closings.tell_rest()
        closings.by_us("c-2", CloseCode.SLOW, "slow", 8.0)
    events = [entry["event"] for entry in logs]
    assert events[:LINES_PER_S] == ["connection closed"] * LINES_PER_S
    assert events[LINES_PER_S:] == ["connections closed", "connection closed"]
    rest = 1_000 - LINES_PER_S
    assert logs[LINES_PER_S]["count"] == rest
    assert logs[LINES_PER_S]["codes"] == {"1012": rest}
    assert closings.counts["gateway", "1012"] == 1_000


def test_what_code_a_client_makes_up_is_not_told_apart() -> None:
    """Otherwise any client could add series without end."""
    closings = Closings()
    before = set(closings.counts)
    for code in (1000, 1006, 3000, 4999, 4408):
        closings.by_client(code)
    assert set(closings.counts) - before == {("client", "other")}
    assert closings.counts["client", "other"] == 3
    assert closings.counts["client", "1000"] == 1
