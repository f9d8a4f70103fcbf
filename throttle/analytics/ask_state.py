"""Asks the state of a product's query from outside of the job."""

from collections.abc import Sequence

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from throttle.analytics.product import Product, StateRow
from throttle.analytics.product_query import address_of, noted_settings
from throttle.settings import AnalyticsSettings
from throttle.spark.java import NoJava, find_java
from throttle.spark.query import first_line
from throttle.spark.scratch import NoFolder, scratch_folder
from throttle.spark.session import running_spark
from throttle.spark.start.java_process import NoSpark


class NoState(RuntimeError):
    """There is no state to be read; the message says why."""


def ask_state(
    settings: AnalyticsSettings,
    product: Product,
    batch_id: int | None = None,
    isin: str | None = None,
) -> Sequence[StateRow]:
    """Start a Spark and return what a product's state held after a batch.

    The oldest first; by default after the newest committed batch. Raises NoState.
    """
    address = address_of(settings, product.name)
    try:
        with scratch_folder() as scratch:
            java = find_java(settings.java_home, scratch)
            with running_spark(settings, java, scratch) as spark:
                rows = product.state(spark, address, batch_id)
                # Those of the query, whatever this process is told.
                shown = product.shown(rows, noted_settings(spark, address))
    except (NoFolder, NoJava, NoSpark) as error:
        raise NoState(str(error)) from error
    except (PySparkException, Py4JError, ConnectionError) as error:
        raise NoState(f"checkpoint {address}: {first_line(error)}") from error
    return [row for row in shown if isin in (None, row.isin)]
