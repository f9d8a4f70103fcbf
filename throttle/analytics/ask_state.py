"""Asks the state of a product's query from outside of the job."""

from collections.abc import Sequence

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from throttle.analytics.checkpoint import address_of
from throttle.analytics.state import bars_in_state
from throttle.contract.bars import Bar
from throttle.job import first_line
from throttle.settings import AnalyticsSettings
from throttle.spark.java import NoJava, find_java
from throttle.spark.scratch import NoFolder, scratch_folder
from throttle.spark.session import NoSpark, create_session


class NoState(RuntimeError):
    """There is no state to be read; the message says why."""


def ask_state(
    settings: AnalyticsSettings,
    product: str,
    batch_id: int | None = None,
    isin: str | None = None,
) -> Sequence[Bar]:
    """Return what a product's state held after a batch, the oldest first.

    By default after the newest committed one. Raises NoState.
    """
    address = address_of(settings, product)
    try:
        with scratch_folder() as scratch:
            spark = create_session(
                settings, find_java(settings.java_home, scratch), scratch
            )
            try:
                bars = bars_in_state(spark, address, batch_id)
            finally:
                spark.stop()
    except (NoFolder, NoJava, NoSpark) as error:
        raise NoState(str(error)) from error
    except (PySparkException, Py4JError, ConnectionError) as error:
        raise NoState(f"checkpoint {address}: {first_line(error)}") from error
    return [bar for bar in bars if isin in (None, bar.isin)]
