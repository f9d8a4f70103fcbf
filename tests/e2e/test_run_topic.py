"""One command from an existing topic to the board, as its page says it."""

import json
import re
import shlex
import sys
import time
from pathlib import Path

import pytest

from ingest.process.direct_http import open_direct
from tests.conftest import eventually
from tests.doc_pages import blocks, commands
from tests.e2e.processes import running_command
from tests.kafka import bounds, make_topic, produce
from tests.kafka_broker.broker import Broker
from tests.ports import free_port
from tests.quick_java import QUICK_JAVA

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.timeout(400),
]

PAGE = "docs/kafka.md"
VALUE = re.compile(r'`(\{"sym": .*?\})`')


def example() -> dict[str, object]:
    """Return the value of a message that the page shows."""
    text = (Path(__file__).parents[2] / PAGE).read_text("utf-8")
    [value] = VALUE.findall(text)
    return dict(json.loads(value))


def test_a_topic_of_others_is_on_the_board_and_nothing_is_appended(
    tmp_path: Path, kafka: Broker
) -> None:
    """Values are decoded, instruments have names; what is no trade is counted."""
    [decoder] = [b for b in blocks(PAGE, "python") if "# executions.py" in b]
    (tmp_path / "executions.py").write_text(decoder)
    (tmp_path / "instruments.csv").write_text(
        "isin,code,name\nUS0378331005,AAPL,Apple\n"
    )
    topic = make_topic(kafka)
    # It is stamped by its producer, now.
    trade = {**example(), "ms": time.time_ns() // 1_000_000}
    values = [json.dumps(v).encode() for v in (trade, {**trade, "sym": "XXX"})]
    produce(kafka, topic, values)
    [words] = commands(PAGE, "tickthrottle run --feed none")
    port = free_port()
    replaced = {
        "kafka-1:9092,kafka-2:9092": kafka.servers,
        "executions": topic,
        "latest": "earliest",
    }
    arguments = [replaced.get(word, word) for word in shlex.split(words)[1:]]
    command = [sys.executable, "-P", "-m", "tickthrottle", *arguments]
    environment = {
        **QUICK_JAVA,
        "PYTHONPATH": str(tmp_path),
        "TICKTHROTTLE_STATE_DIR": str(tmp_path / "state"),
    }
    run = [*command, "--port", str(port), "--no-archive"]
    with running_command(tmp_path, "run", run, tmp_path, **environment) as process:
        process.wait_for("Ctrl-C stops everything", within_s=150)
        assert f"trades come from the topic {topic} at" in " ".join(
            process.log().split()
        )

        def price() -> object:
            try:
                with open_direct(f"http://127.0.0.1:{port}/v1/quotes/AAPL", 5) as got:
                    return json.load(got)["price"]
            except OSError:
                return None

        eventually(lambda: price() == 230.15, 60)
        newer = {**trade, "px": "231.07", "id": 18, "ms": trade["ms"] + 1}
        produce(kafka, topic, [json.dumps(newer).encode()])
        eventually(lambda: price() == 231.07, 60)
        with open_direct(f"http://127.0.0.1:{port}/v1/instruments/AAPL", 5) as answer:
            assert json.load(answer)["name"] == "Apple"
    assert bounds(kafka, topic) == (0, 3)


@pytest.mark.parametrize("is_missing", ["topic", "broker"])
def test_a_topic_that_is_not_there_is_told_before_anything_is_started(
    is_missing: str, tmp_path: Path, kafka: Broker
) -> None:
    servers = kafka.servers if is_missing == "topic" else f"127.0.0.1:{free_port()}"
    options_ = ["--trade-log", "kafka", "--kafka-servers", servers]
    command = [sys.executable, "-P", "-m", "tickthrottle", "run", "--feed", "none"]
    place = ["--kafka-topic", "no-such", "--port", str(free_port())]
    state = {"TICKTHROTTLE_STATE_DIR": str(tmp_path / "state")}
    with running_command(
        tmp_path, "run", [*command, *options_, *place], **state
    ) as process:
        assert process.process.wait(timeout=60) == 3
        [line] = process.log().splitlines()
    assert line.startswith("tickthrottle: ")
    assert servers in line
