"""The analytics job's description: each product, what its state keeps, no secret."""

import pytest

from ingest.process.docstrings import Part
from throttle.analytics.products import ALL
from throttle.describe.sub_topology import analytics_parts
from throttle.settings import AnalyticsSettings, ThrottleSettings

SETTINGS = AnalyticsSettings(
    redis_url="redis://me:secret@somewhere:7000/2",
    namespace="ns",
    analytics=",".join(product.name for product in ALL),
    analytics_checkpoint="s3a://bucket/folder",
    lateness_s=60,
    movers_span_s=120,
    movers_every_s=20,
)


@pytest.fixture
def parts() -> dict[str, Part]:
    """All parts by their names."""
    return {part.name: part for part in analytics_parts(SETTINGS)}


def test_every_product_is_told_with_its_window_and_its_state(
    parts: dict[str, Part],
) -> None:
    """By the rules that run, with the values in force."""
    kinds = {"bars": "tumbling", "movers": "hopping", "bursts": "session"}
    for product in ALL:
        told = dict(parts[product.name].items)
        assert kinds.get(product.name, "sliding") in told["windows"]
        assert told["watermark"].startswith(f"{product.kept_ms(SETTINGS)} ms ")
        assert told["state"].startswith("RocksDB")
        assert told["checkpoint"] == f"s3a://bucket/folder/{product.name}"
        assert all(told.values())
    assert "lateness_ms=60000" in dict(parts["bars"].items)["rule"]
    panes = dict(parts["movers"].items)
    assert "span_ms=120000" in panes["rule"]
    assert panes["begun anew for another"] == "movers_span_s 120, movers_every_s 20"


def test_keys_and_settings_are_told_without_secrets(parts: dict[str, Part]) -> None:
    """Those of the analytics job; the others stand with the throttle."""
    keys = dict(parts["analytics_keys"].items)
    assert keys["ns:movers"].startswith("String: the newest list")
    assert "ns:analytics:<product>:ledger" in keys
    told = dict(parts["analytics_settings"].items)
    own = AnalyticsSettings.model_fields.keys() - ThrottleSettings.model_fields.keys()
    assert len(told) == len(own)
    assert "TICKTHROTTLE_LATENESS_S = 60" in told
    assert not any("secret" in str(part) for part in parts.values())
