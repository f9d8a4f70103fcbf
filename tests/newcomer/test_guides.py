"""The guides, followed to the letter: beside a pipeline that nothing feeds; a topic."""

from pathlib import Path

import pytest

from tests.e2e.processes import running
from tests.kafka import bounds
from tests.kafka_broker.broker import Broker
from tests.newcomer.guides import GUIDES, TOPIC, follow
from tests.node import node_command
from tests.ports import free_port
from tests.quick_java import QUICK_JAVA

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.timeout(900),
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
        # Each of its roads ends with this question.
        follow("docs/guides/deploy.md", folder, ports, 1, **environment)


@pytest.mark.kafka
def test_the_guide_of_a_topic_shows_what_its_commands_print(
    tmp_path: Path, kafka: Broker
) -> None:
    """From values of another form to a board; nothing is appended but by the guide."""
    port = free_port()
    ports = {"8000": port, "9092": int(kafka.servers.rpartition(":")[2])}
    environment = {
        **QUICK_JAVA,
        "NODE_OPTIONS": " ".join(node_command()[1:]),
        "PYTHONPATH": str(tmp_path),
        "TICKTHROTTLE_STATE_DIR": str(tmp_path / "state"),
    }
    follow(TOPIC, tmp_path, ports, **environment)
    assert bounds(kafka, "executions") == (0, 6)
