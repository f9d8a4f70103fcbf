"""The analytics job describes itself: a sub-topology with a state for each product.

Everything is taken from the products and their rules, which are what runs.
"""

import inspect
from collections.abc import Iterator

from ingest.process.docstrings import Part, keys_of, settings_part, summary
from ingest.redis_keys import AnalyticsKeys
from throttle.analytics import product_publisher
from throttle.analytics.product import Product
from throttle.analytics.product_query import PARTITIONS, PROVIDER, address_of, conf_of
from throttle.analytics.products import BY_NAME
from throttle.settings import AnalyticsSettings, ThrottleSettings
from throttle.spark.query import OutputMode

_MODES: dict[OutputMode, str] = {
    "append": "what has ended, once (append)",
    "update": "what a batch has changed (update)",
}


def analytics_parts(settings: AnalyticsSettings) -> Iterator[Part]:
    """Describe the analytics job that would run: its products, keys and settings."""
    for name in settings.products():
        yield Part(name, f"Analytics: {name}", tuple(_items(BY_NAME[name], settings)))
    keys = keys_of(AnalyticsKeys(settings.namespace), "analytics")
    items = (
        ("publishes", summary(product_publisher.__doc__)),
        *((key.key, key.holds) for key in keys),
    )
    yield Part("analytics_keys", "Analytics: keys and channels", items)
    yield settings_part("analytics", settings, ThrottleSettings)


def _items(product: Product, settings: AnalyticsSettings) -> Iterator[tuple[str, str]]:
    module = inspect.getmodule(product.rule)
    rule, conf = product.rule(settings), conf_of(settings, product)
    each = "instrument and start" if rule.is_combined else "trade"
    taken = "leave their windows" if rule.takes_back else "stay"
    # "Bars: tumbling windows of the exchange's clock, amended by late trades."
    yield "windows", summary(module.__doc__ if module else "").partition(": ")[2]
    yield (
        "batches",
        f"end {rule.close_after_ms} ms after each multiple of {rule.batch_ms} ms, by "
        "the log's clock",
    )
    yield "rows for Spark", f"one of each {each}. {summary(type(rule).__doc__)}"
    yield "rule", repr(rule)
    yield "trades that are taken back", taken
    store = conf[PROVIDER].rpartition(".")[2]
    yield "state", f"{store}, {conf[PARTITIONS]} partitions, form {product.form}"
    yield (
        "watermark",
        f"{product.kept_ms(settings)} ms behind the newest row; it says what the state "
        "may forget, and drops nothing",
    )
    yield "gives out", _MODES[product.mode]
    yield "sink", summary(product.sink.__doc__)
    begun = (f"{name} {getattr(settings, name)}" for name in product.state_settings)
    yield "checkpoint", address_of(settings, product.name)
    yield "begun anew for another", ", ".join(begun)
