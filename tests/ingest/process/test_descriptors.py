"""The limit of open files is raised as far as it may be."""

import subprocess
import sys

RUN = """
import resource
from ingest.process.descriptors import raise_descriptor_limit
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 200))
print(raise_descriptor_limit(), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def test_a_process_allows_itself_what_the_system_allows() -> None:
    """The usual soft limit, 1,024, is for programs that know no better."""
    run = [sys.executable, "-c", RUN]
    found = subprocess.run(run, capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.split() == ["200", "200", "200"]
