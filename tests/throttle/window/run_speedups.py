"""Compares both ways for as long as told: run_speedups --seconds 600 --seed 1."""

import time
from random import Random
from typing import Annotated

import typer

from ingest.tradelog.speedups import find_speedups
from tests.speedups import NOT_BUILT
from tests.throttle.window.speedups_fuzz import (
    check_any_buffers,
    check_both_ways,
    random_chunk,
)


def main(
    seconds: Annotated[float, typer.Option(help="How long.")] = 60,
    seed: Annotated[int, typer.Option(help="With which to begin.")] = 0,
) -> None:
    """Try seeds one by one; what fails names its own."""
    if not find_speedups():
        raise SystemExit(NOT_BUILT)
    until, entries, first = time.monotonic() + seconds, 0, seed
    while time.monotonic() < until:
        random = Random(seed)
        chunk = random_chunk(random, 1_000)
        try:
            check_both_ways(chunk)
            for _ in range(1_000):
                check_any_buffers(random)
        except AssertionError:
            print(f"seed {seed} makes another row")
            raise
        entries, seed = entries + len(chunk), seed + 1
    print(f"{entries:,} entries of the seeds {first} to {seed - 1}: the same both ways")


if __name__ == "__main__":
    typer.run(main)
