"""How many files and connections a process may have open."""

import resource
import sys


def raise_descriptor_limit() -> int:
    """Allow this process as many open files as the system lets it; return how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = hard
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        # The system says "no limit" and has one.
        allowed = soft
    return sys.maxsize if allowed == resource.RLIM_INFINITY else allowed
