"""A product is a folder and a line: nothing else knows one by its name."""

import ast
from pathlib import Path

from ingest.redis_keys import PRODUCTS
from tests.package_graph import name_of, tree_of
from tests.paths import ROOT
from tests.tidy import check
from throttle.analytics.partials.log_source import PartialOptions
from throttle.analytics.products import ALL, BY_NAME
from throttle.contract.bars import CLOSE_AFTER_MS
from throttle.settings import AnalyticsSettings
from throttle.spark.options import log_options
from throttle.testing.analytics_driver import AnalyticsDriver
from tickthrottle_client.log_v1 import LogInfo

ANALYTICS = ROOT / "throttle" / "analytics"
SKELETON = [*ANALYTICS.glob("*.py"), *(ANALYTICS / "partials").glob("*.py")]


def named(path: Path) -> set[str]:
    """Return the products that a file names in its code."""
    nodes = ast.walk(tree_of(path))
    texts = {n.value for n in nodes if isinstance(n, ast.Constant)}
    return texts & set(PRODUCTS)


def test_the_skeleton_knows_no_product_by_name() -> None:
    """Otherwise a further one would be a condition, not a folder."""
    check(f"{name_of(path)}: {name}" for path in SKELETON for name in named(path))


def test_there_is_a_product_for_every_name_of_the_contract() -> None:
    """What gateways read is what the job makes, and what the test driver tries."""
    assert tuple(BY_NAME) == PRODUCTS
    assert set(AnalyticsDriver().settings.products()) == set(PRODUCTS)


def test_a_rule_survives_the_way_through_spark() -> None:
    """Spark's options are text; a task computes by the very same rule."""
    settings = AnalyticsSettings(burst_gap_ms=7_000, lateness_s=5)
    log = log_options(settings, LogInfo("a", 2, 0))
    for product in ALL:
        options = PartialOptions(log, product.rule(settings), "latest")
        assert PartialOptions.from_spark(options.to_spark()) == options


def test_a_batch_ends_by_the_rule() -> None:
    """So long after a multiple of its length, by the log's clock."""
    for product in ALL:
        rule = product.rule(AnalyticsSettings())
        end_ms = 12 * rule.batch_ms + CLOSE_AFTER_MS
        assert rule.boundary_ms(end_ms) == rule.boundary_ms(end_ms + 1) == end_ms
        assert rule.boundary_ms(end_ms - 1) == end_ms - rule.batch_ms


def test_checkpoints_of_before_fit() -> None:
    """Whoever renames a setting or a form here refuses the states that exist."""
    noted = {p.name: (p.form, p.state_settings) for p in ALL}
    assert noted == {
        "bars": (2, ("bars_ms",)),
        "movers": (3, ("movers_span_s", "movers_every_s")),
        "bursts": (2, ("burst_gap_ms",)),
        "moves": (1, ("move_span_ms", "analytics_batch_ms")),
    }
