"""Hands over what a test of the whole tree finds: all of it at once, one a line."""

from collections.abc import Iterable


def check(violations: Iterable[str]) -> None:
    """Fail with every violation, not only with the first."""
    lines = list(violations)
    assert not lines, "\n".join([f"{len(lines)} violations", *lines])
