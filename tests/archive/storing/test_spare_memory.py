"""Memory that columns had is the system's again."""

import subprocess
import sys

SCRIPT = """
from pathlib import Path
import pyarrow as pa
from archive.storing.spare_memory import give_back

def resident_kb():
    status = Path("/proc/self/status").read_text("utf-8")
    return int(status.partition("VmRSS:")[2].split()[0])

def fill():
    columns = [pa.array(range(20_000)) for _ in range(400)]
    return len(columns)

fill()
kept = resident_kb()
give_back()
print(kept - resident_kb())
"""


def test_what_columns_took_up_is_given_back() -> None:
    """60 MiB were used, in pieces; Arrow's pool keeps them otherwise."""
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) > 20_000
