"""Where a topic of Kafka is and how to reach it; nothing here talks to a broker."""

from pathlib import Path

from ingest.tradelog.contract import LogUnusable
from tickthrottle_client.kafka_topic import OWNED, KafkaTopic

__all__ = ["KafkaTopic"]


def read_options(path: Path | None) -> tuple[tuple[str, str], ...]:
    """Read further options of librdkafka from a file of ``name=value`` lines.

    Raises LogUnusable: of no such file, of another form, or not the user's to set.
    """
    if path is None:
        return ()
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise LogUnusable(f"kafka_config {path}: {error}") from None
    options = {}
    for number, line in enumerate(lines, 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        name, equals, value = (part.strip() for part in stripped.partition("="))
        if not equals or not name:
            raise LogUnusable(f"kafka_config {path}: line {number} is not name=value")
        if name in OWNED:
            raise LogUnusable(
                f"kafka_config {path}: {name} may not be set: {OWNED[name]}"
            )
        options[name] = value
    return tuple(options.items())
