"""The packages of the product."""

PACKAGES = ("archive", "deploy", "gateway", "ingest", "intake", "throttle")
