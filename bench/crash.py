"""Kill the job again and again, at named points and random moments; compare all.

Proxy, rig and oracle are the tests' own: this starts them (`--help` has the options).
"""

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    os.chdir(Path(__file__).parents[1])
    os.execv(
        sys.executable, [sys.executable, "-m", "tests.e2e.run_crashes", *sys.argv[1:]]
    )
