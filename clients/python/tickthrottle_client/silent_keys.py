"""What is said of keys of which nothing has come. Pure."""

from collections.abc import Sequence

SHOWN = 10


def silence_of(keys: Sequence[str], *, has_begun: bool) -> str:
    """Return the sentence about some keys; it names ten of them at most.

    ``has_begun`` says whether any window was ever published.
    """
    further = len(keys) - SHOWN
    names = ", ".join(keys[:SHOWN]) + (f" and {further} more" if further > 0 else "")
    if has_begun:
        why = "not traded since the stream began; the next trade will be told"
    else:
        why = "the stream has not begun; its first window will be told"
    return f"nothing yet of {names}: {why}"
