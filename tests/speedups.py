"""Both ways to read and check: in Python alone, and with the compiled package."""

import pytest

from ingest.tradelog.speedups import find_speedups

NOT_BUILT = "the compiled package is not built: it needs a C compiler (make speedups)"

WAYS = (False, True) if find_speedups() else (False,)
"""What ``speedups`` may be here, for tests that try all in one."""

_needs_build = pytest.mark.skipif(not find_speedups(), reason=NOT_BUILT)
BOTH_WAYS = (
    pytest.param(False, id="python"),
    pytest.param(True, id="compiled", marks=_needs_build),
)
"""The same for tests that are tried once each way."""
