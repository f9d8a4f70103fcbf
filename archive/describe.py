"""The archive describes itself. Pure; it needs neither Arrow nor a database."""

from collections.abc import Iterator

from archive.contract import merge_rule, segment
from archive.settings import ArchiveSettings
from ingest.process.docstrings import Part, paragraph, settings_part, summary
from ingest.process.redact import shown
from ingest.redis_keys import AnalyticsKeys, Keys, OtherKeys, StatusKeys
from ingest.settings import MetricsSettings, TopicSettings

STORES = "each published window, and each bar as it closed or was amended, exactly once"


def archive_parts(settings: ArchiveSettings) -> Iterator[Part]:
    """Describe the archive that would run, and its settings."""
    namespace, is_files = settings.namespace, settings.destination == "parquet"
    place = {
        "parquet": str(settings.archive_dir),
        "postgres": shown("postgres_url", settings.postgres_url),
        "kafka": f"{settings.archive_topics}.* at {settings.kafka_servers}",
    }
    merges = [("merges", summary(merge_rule.__doc__))] if is_files else []
    is_relay = settings.destination == "kafka"
    statuses = [] if is_relay else [("statuses from", StatusKeys(namespace).stream)]
    items = (
        ("stores", STORES),
        ("windows from", Keys(namespace).windows),
        ("bars from", AnalyticsKeys(namespace).bar_log),
        *statuses,
        ("place", place[settings.destination]),
        ("day of a window or bar", paragraph(segment.day_of.__doc__, 1)),
        *merges,
        ("says how far it is", OtherKeys(namespace).archives),
    )
    yield Part("archive", f"Archive: {settings.name}", items)
    yield settings_part("archive", settings, TopicSettings, MetricsSettings)
