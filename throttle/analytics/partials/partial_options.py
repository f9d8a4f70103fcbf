"""What Spark is told of the log and a product, and what one task is told to read."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import orjson
from pyspark.sql.datasource import InputPartition

from throttle.analytics.partials.partial_rule import PartialRule
from throttle.contract.cut import Cut
from throttle.spark.options import SourceOptions


@dataclass(frozen=True, slots=True)
class PartialOptions:
    """What the source needs to know, as it travels through Spark's string options.

    ``rule`` says which partial bars are made and when a batch ends, ``start`` where a
    query begins that has no checkpoint.
    """

    log: SourceOptions
    rule: PartialRule
    start: str

    @classmethod
    def create(
        cls, log: SourceOptions, rule: PartialRule, start: str
    ) -> "PartialOptions":
        """Create them; series are left out of a product that keeps none."""
        return cls(log if rule.keeps_series else replace(log, series=""), rule, start)

    def to_spark(self) -> dict[str, str]:
        """Encode for ``DataStreamReader.options``."""
        rule = orjson.dumps(self.rule.to_object()).decode()
        return {**self.log.to_spark(), "rule": rule, "start": self.start}

    @classmethod
    def from_spark(cls, options: Mapping[str, str]) -> "PartialOptions":
        """Decode what ``to_spark`` wrote."""
        rule = PartialRule.of_object(orjson.loads(options["rule"]))
        return cls(SourceOptions.from_spark(options), rule, options["start"])


@dataclass(frozen=True)
class CutRange(InputPartition):
    """What one task reads: some partitions of the log, from a cut to a cut.

    The query counts what was appended from ``since_ms`` on.
    """

    start: Cut
    end: Cut
    partitions: tuple[int, ...]
    since_ms: int = 0
