"""What a product of the analytics job is made of, from the trade log to Redis."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from throttle.analytics.partials.partial_rule import PartialRule
from throttle.analytics.product_sink import ProductSink
from throttle.settings import AnalyticsSettings
from throttle.spark.query import OutputMode


class StateRow(Protocol):
    """A row of a state, as it is shown."""

    @property
    def isin(self) -> str:
        """Return the instrument it is of."""


@dataclass(frozen=True, slots=True)
class Product:
    """One kind of windows, made by a query of its own; ``products.py`` has them all.

    ``form`` is that of the state's rows, another one cannot be read; nor can a state
    that was begun under other ``state_settings``. ``rule`` makes partial bars of
    trades. Spark adds them up in ``windows``, keeps these in its state for ``kept_ms``
    after their end by the log's clock, and gives them out in an output ``mode``, to the
    ``sink``. ``state`` reads the rows of the state after a batch, ``shown``
    makes of them what people see, by the settings that the checkpoint notes.
    """

    name: str
    form: int
    state_settings: tuple[str, ...]
    rule: Callable[[AnalyticsSettings], PartialRule]
    kept_ms: Callable[[AnalyticsSettings], int]
    windows: Callable[[DataFrame, AnalyticsSettings, int], DataFrame]
    mode: OutputMode
    sink: type[ProductSink[Any]]
    state: Callable[[SparkSession, str, int | None], pa.Table]
    shown: Callable[[pa.Table, Mapping[str, Any]], Sequence[StateRow]]
    ends_in_batches_without_data: bool = False
    """Whether Spark gives windows out in a batch after the one that ends them."""
