"""A topic of others on the board, by the one command of the page about Kafka."""

import json
import re
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ingest.process.direct_http import open_direct
from tests.doc_pages import blocks, commands, text_of
from tests.e2e.processes import Running, running_command
from tests.kafka import make_topic, produce
from tests.kafka_broker.broker import Broker
from tests.ports import free_port
from tests.quick_java import QUICK_JAVA

PAGE = "docs/guides/topic.md"
STEPS = ("save executions.py", "save instruments.csv", "tickthrottle run --feed none …")
_VALUE = re.compile(r'^(\{"sym": .*?\})$', re.M)


@dataclass(frozen=True)
class TopicBoard:
    """A board that shows a topic; ``trade`` is the value that the topic began with."""

    topic: str
    trade: dict[str, Any]
    port: int
    process: Running

    def price(self) -> object:
        """Return the newest price of the page's instrument, None before the first."""
        try:
            url = f"http://127.0.0.1:{self.port}/v1/quotes/AAPL"
            with open_direct(url, 5) as answer:
                return json.load(answer)["price"]
        except OSError:
            return None


@contextmanager
def running_topic_board(folder: Path, kafka: Broker) -> Iterator[TopicBoard]:
    """Run the page's command on a topic with a trade, and a value that is none."""
    [decoder] = [b for b in blocks(PAGE, "python") if "# executions.py" in b]
    (folder / "executions.py").write_text(decoder)
    (folder / "instruments.csv").write_text("isin,code,name\nUS0378331005,AAPL,Apple\n")
    topic = make_topic(kafka)
    example = _VALUE.findall(text_of(PAGE))[0]
    # It is stamped by its producer, now.
    trade = {**json.loads(example), "ms": time.time_ns() // 1_000_000}
    values = [json.dumps(v).encode() for v in (trade, {**trade, "sym": "XXX"})]
    produce(kafka, topic, values)
    [words] = commands(PAGE, "tickthrottle run --feed none")
    port = free_port()
    replaced = {
        "127.0.0.1:9092": kafka.servers,
        "executions": topic,
        "8000": str(port),
    }
    arguments = [replaced.get(word, word) for word in shlex.split(words)[1:]]
    command = [sys.executable, "-P", "-m", "tickthrottle", *arguments]
    environment = {
        **QUICK_JAVA,
        "PYTHONPATH": str(folder),
        "TICKTHROTTLE_STATE_DIR": str(folder / "state"),
    }
    run = [*command, "--no-archive"]
    with running_command(folder, "run", run, folder, **environment) as process:
        yield TopicBoard(topic, trade, port, process)
