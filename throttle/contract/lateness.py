"""When something is late: the one rule for windows, jobs, trades and the feed. Pure."""

LATE_AFTER_WINDOWS = 3
"""This many windows may pass before what comes with every window counts as missing."""


def is_late(age_ms: float, window_ms: float) -> bool:
    """Say whether what is as old as this should have come, or come again, by now."""
    return age_ms > LATE_AFTER_WINDOWS * window_ms
