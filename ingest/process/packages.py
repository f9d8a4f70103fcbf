"""The packages of the product."""

PACKAGES = ("deploy", "gateway", "ingest", "intake", "throttle")
