"""One command from an existing topic to the board, as its page says it."""

import json
import sys
from pathlib import Path

import pytest

from ingest.process.direct_http import open_direct
from tests.conftest import eventually
from tests.e2e.processes import running_command
from tests.kafka import bounds, produce
from tests.kafka_broker.broker import Broker
from tests.newcomer.topic_board import running_topic_board
from tests.ports import free_port

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.timeout(400),
]


def test_a_topic_of_others_is_on_the_board_and_nothing_is_appended(
    tmp_path: Path, kafka: Broker
) -> None:
    """Values are decoded, instruments have names; what is no trade is counted."""
    with running_topic_board(tmp_path, kafka) as board:
        board.process.wait_for("Ctrl-C stops everything", within_s=150)
        assert f"trades come from the topic {board.topic} at" in " ".join(
            board.process.log().split()
        )
        eventually(lambda: board.price() == 230.15, 60)
        trade = board.trade
        newer = {**trade, "px": "231.07", "id": 18, "ms": trade["ms"] + 1}
        produce(kafka, board.topic, [json.dumps(newer).encode()])
        eventually(lambda: board.price() == 231.07, 60)
        url = f"http://127.0.0.1:{board.port}/v1/instruments/AAPL"
        with open_direct(url, 5) as answer:
            assert json.load(answer)["name"] == "Apple"
    assert bounds(kafka, board.topic) == (0, 3)


@pytest.mark.parametrize("is_missing", ["topic", "broker"])
def test_a_topic_that_is_not_there_is_told_before_anything_is_started(
    is_missing: str, tmp_path: Path, kafka: Broker
) -> None:
    servers = kafka.servers if is_missing == "topic" else f"127.0.0.1:{free_port()}"
    options_ = ["--trade-log", "kafka", "--kafka-servers", servers]
    command = [sys.executable, "-P", "-m", "tickthrottle", "run", "--feed", "none"]
    place = ["--kafka-topic", "no-such", "--port", str(free_port())]
    with running_command(
        tmp_path,
        "run",
        [*command, *options_, *place],
        TICKTHROTTLE_STATE_DIR=str(tmp_path / "state"),
    ) as process:
        assert process.process.wait(timeout=60) == 3
        [line] = process.log().splitlines()
    assert line.startswith("tickthrottle: ")
    assert servers in line
