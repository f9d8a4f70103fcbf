"""The guides, followed to the letter beside a pipeline that nothing feeds."""

from pathlib import Path

import pytest

from tests.e2e.processes import running
from tests.newcomer.guides import GUIDES, follow
from tests.ports import free_port
from tests.quick_java import QUICK_JAVA

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.timeout(300),
]


def test_a_guide_shows_what_its_commands_print(tmp_path: Path) -> None:
    """Each command of each guide; what is another one each time is not compared."""
    port, other = free_port(), free_port()
    ports = {
        **{"8000": port, "8001": port + 1},
        **{"8010": other, "8011": other + 1},
    }
    environment = {
        **QUICK_JAVA,
        "TICKTHROTTLE_STATE_DIR": str(tmp_path / "state"),
        "TICKTHROTTLE_MARKET_HOURS": "XKRX",
    }
    run = ["run", "--feed", "none", "--port", str(port), "--no-archive"]
    with running(tmp_path, *run, **environment) as pipeline:
        pipeline.wait_for("live: http", within_s=100)
        folder = tmp_path / "reader"
        folder.mkdir()
        for guide in GUIDES:
            follow(f"docs/guides/{guide}.md", folder, ports, **environment)
