"""A function in a process of its own, and a pipe to it."""

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any


@contextmanager
def spawned(
    target: Callable[..., None], *arguments: Any
) -> Iterator[tuple[Connection, SpawnProcess]]:
    """Call a function in a process of its own within the block, with a pipe first."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=target, args=(theirs, *arguments))
    process.start()
    # With the other end open here too, the death of the process would go unseen.
    theirs.close()
    try:
        yield ours, process
    finally:
        process.kill()
        process.join()
        ours.close()
