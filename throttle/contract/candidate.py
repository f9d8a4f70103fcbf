"""How a job that is about to publish is noted in ``Keys.meta``. Pure.

This module is a contract. The field ``candidate:<job>`` holds ``<until_ms> <owner>``:
the owner was there, by the Redis server's clock, and counts as there until then.
"""

from collections.abc import Mapping

_PREFIX = "candidate:"


def candidate_field(job: str) -> str:
    """Return the field of a job."""
    return _PREFIX + job


def encode_candidate(owner: str, until_ms: int) -> str:
    """Encode what the field holds."""
    return f"{until_ms} {owner}"


def decode_candidates(meta: Mapping[bytes, bytes], clock_ms: int) -> dict[str, str]:
    """Return the owners of the candidates that are there now, by their jobs."""
    candidates = {}
    for name, value in meta.items():
        field = name.decode(errors="replace")
        until, _, owner = value.decode(errors="replace").partition(" ")
        is_one = field.startswith(_PREFIX) and until.isascii() and until.isdigit()
        if is_one and clock_ms < int(until):
            candidates[field.removeprefix(_PREFIX)] = owner
    return candidates
