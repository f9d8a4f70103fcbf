"""Gives back what columns have taken up: Arrow's pool keeps it, for each thread."""

import pyarrow as pa


def give_back() -> None:
    """Return the pool's unused memory to the system; to be called by who used it.

    An archive works for a moment in a minute. What its pool keeps meanwhile is 75 MiB,
    and grows for an hour and more (``bench/README.md``).
    """
    pa.default_memory_pool().release_unused()
