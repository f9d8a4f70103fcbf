"""Every key in Redis is built in one file."""

import re

from ingest.redis_keys import OtherKeys
from tests.paths import ROOT
from tickthrottle_client import log_v1

BUILT = re.compile(r"\{[\w.]*namespace\}:[\w{]|namespace \+ .:")


def test_no_other_file_builds_a_key() -> None:
    """But for the log's, which its client library has: it works without the product."""
    packages = ("archive", "bench", "cli", "clients", "gateway", "ingest", "intake")
    files = {
        str(path.relative_to(ROOT))
        for package in (*packages, "throttle")
        for path in (ROOT / package).rglob("*.py")
        if any(
            BUILT.search(line)
            for line in path.read_text("utf-8").splitlines()
            if "fail(" not in line
        )
    }
    assert files == {
        "ingest/redis_keys.py",
        "clients/python/tickthrottle_client/log_v1.py",
    }


def test_the_logs_keys_are_none_of_the_others() -> None:
    """Whoever counts keys by their beginnings tells them apart."""
    keys = OtherKeys("tt")
    assert log_v1.info_key("tt") not in {keys.instruments, keys.archives}
