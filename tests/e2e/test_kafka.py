"""The job on a topic of a real Kafka broker: the oracle, crashes, the ledger.

Two cases of many; `bench/crash.py --log kafka` has the others, as often as you like.
"""

from pathlib import Path
from random import Random

import pytest

from deploy.broker import Broker
from tests.e2e.crash import POINTS_OF_ANY_LOG, Crasher
from tests.e2e.kafka_rig import create_kafka_rig

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.timeout(400),
]

W = 500


@pytest.mark.parametrize(
    ("partitions", "is_keyed", "point"),
    [
        (4, True, "after_offset_log"),
        (24, False, "during_publish"),
    ],
)
def test_a_job_killed_at_this_point_misses_and_doubles_nothing(
    kafka: Broker, tmp_path: Path, partitions: int, is_keyed: bool, point: str
) -> None:
    """Exactly once, latest, accounted: as the oracle says, whoever has which issue."""
    assert point in POINTS_OF_ANY_LOG
    with (
        create_kafka_rig(
            tmp_path / "rig", W, kafka.servers, partitions, is_keyed=is_keyed
        ) as rig,
        Crasher(rig) as crasher,
    ):
        crash = crasher.crash_once(point, Random(partitions))
        assert crash.checked.windows > 10
        assert crash.checked.trades > 1_000
