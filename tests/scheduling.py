"""Which tests never run beside each other: `make test-all` gives them to one worker.

Chromium gives up what it is loading whenever the machine's networks change
(ERR_NETWORK_CHANGED), even from loopback; every container that starts or ends changes
them. No option of Chromium stops that.
"""

import re
from functools import cache

from xdist.scheduler import LoadFileScheduling

from tests.paths import ROOT

NETWORKS = "networks"
_CONCERNED = re.compile(r"\bmark\.(browser|container)\b")


@cache
def worker_of(file: str) -> str:
    """Return the name of what has to run in one piece: a file, or all of a kind."""
    path = ROOT / file
    text = path.read_text("utf-8") if path.is_file() else ""
    return NETWORKS if _CONCERNED.search(text) else file


class Scheduling(LoadFileScheduling):
    """Each file in one piece; all files that depend on the networks in one piece."""

    def _split_scope(self, nodeid: str) -> str:
        return worker_of(nodeid.split("::", 1)[0])
