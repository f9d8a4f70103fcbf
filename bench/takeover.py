"""How long the stream stands still when the active job dies and a standby goes on.

Rig and oracle are the tests' own: this starts them (`--help` has the options).
"""

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    os.chdir(Path(__file__).parents[1])
    os.execv(
        sys.executable, [sys.executable, "-m", "tests.e2e.run_takeovers", *sys.argv[1:]]
    )
