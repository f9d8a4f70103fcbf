"""The rules of the firehose page, in Node; what it shows is tested in a browser."""

import shutil
import subprocess
from pathlib import Path

from gateway.app import STATIC
from tests.conftest import skip_or_fail


def test_the_rules_of_the_firehose_page_hold(tmp_path: Path) -> None:
    """Rates, ratios, sizes, and which instruments are shown: see firehose_rules.mjs."""
    node = shutil.which("node")
    if node is None:
        skip_or_fail("no node on PATH")
    shutil.copytree(STATIC, tmp_path / "static")
    (tmp_path / "package.json").write_text('{"type":"module"}')
    rules = tmp_path / "firehose_rules.mjs"
    shutil.copy(Path(__file__).with_name("firehose_rules.mjs"), rules)
    done = subprocess.run(
        [node, "--test", rules], check=False, capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stdout.decode()
