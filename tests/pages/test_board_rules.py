"""The rules of the pages for users, in Node; what they show is tested in a browser."""

import json
import shutil
import subprocess
from pathlib import Path

from gateway.app import STATIC
from ingest.sources.market import daily_limits
from tests.conftest import skip_or_fail

RULES = ["board_rules.mjs", "board_alerts.mjs", "board_words.mjs", "view_rules.mjs"]
RULES += ["firehose_rules.mjs"]
"""Search, orders, lists, staleness; alerts; words, languages, times; the map; rates,
ratios and sizes of the firehose, and which instruments it shows.
"""


def test_the_rules_of_the_pages_hold(tmp_path: Path) -> None:
    """Each is a file of tests beside this one."""
    node = shutil.which("node")
    if node is None:
        skip_or_fail("no node on PATH")
    shutil.copytree(STATIC, tmp_path / "static")
    (tmp_path / "package.json").write_text('{"type":"module"}')
    closes = [*range(1, 5_000, 7), *range(5_000, 2_000_000, 995)]
    limits = [[close, *daily_limits(close)] for close in closes]
    (tmp_path / "limits.json").write_text(json.dumps(limits))
    # What the page's import map says, as Node wants to have it said.
    module = tmp_path / "node_modules" / "d3-hierarchy"
    module.mkdir(parents=True)
    shutil.copy(STATIC / "vendor" / "d3-hierarchy.mjs", module / "index.mjs")
    (module / "package.json").write_text('{"exports":"./index.mjs"}')
    for name in RULES:
        shutil.copy(Path(__file__).with_name(name), tmp_path)
    done = subprocess.run(
        [node, "--test", *RULES],
        check=False,
        capture_output=True,
        timeout=120,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout.decode()
