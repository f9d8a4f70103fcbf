"""The job on a topic of a real Kafka broker: the oracle, crashes, the ledger.

One point of many; `run_crashes --trade-log kafka` has the others.
A topic with keys, where a partition has its instruments alone, is in
test_kafka_faults.py.
"""

from collections.abc import Iterator
from random import Random

import pytest

from tests.e2e.crash import Crasher
from tests.e2e.kafka_rig import create_kafka_rig
from tests.kafka_broker.broker import Broker

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.timeout(400),
]

W = 500


@pytest.fixture(scope="module")
def crasher(
    kafka: Broker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Crasher]:
    """A job on a topic of 24 partitions; an instrument's trades are in all of them."""
    folder = tmp_path_factory.mktemp("kafka") / "rig"
    with (
        create_kafka_rig(folder, W, kafka.servers, 24, is_keyed=False) as rig,
        Crasher(rig) as crasher,
    ):
        yield crasher


def test_a_killed_job_misses_and_doubles_nothing(crasher: Crasher) -> None:
    """Exactly once, latest, accounted: as the oracle says, whoever has which."""
    crash = crasher.crash_once("after_offset_log", Random(1))
    assert crash.checked.windows > 2
    assert crash.checked.trades > 0
