"""What the parts of a run take from the environment of their user, and what not.

Pure.
"""

from collections.abc import Mapping, Sequence

from archive.settings import ArchiveSettings
from gateway.settings import GatewaySettings
from ingest.settings import IngestSettings, variable_of
from throttle.settings import AnalyticsSettings, ThrottleSettings

OF_A_LOG = (
    *("trade_log", "kafka_servers", "kafka_topic", "kafka_config"),
    *(
        "kafka_instruments_topic",
        "kafka_margin_ms",
        "decoder",
        "schema_registry_url",
        "start",
        "only_partitions",
    ),
)
"""Settings that say which log is read, and how. A run with a feed of its own has a log
of its own: its made-up trades are nothing for somebody else's topic.
"""

OF_A_DEPLOYMENT = (
    *("redis_url", "redis_replicas", "namespace", "list_instruments", "job", "standby"),
    *("other_gateways", "follow", "follow_token_file"),
    *("incidents_file", "analytics_checkpoint"),
    *("archive_dir", "archive_name", "archive_topics", "postgres_url"),
)
"""Settings of a deployment's server, job, gateways, state and archive. A run has its
own of each.
"""

_KINDS = (
    *(IngestSettings, ThrottleSettings, AnalyticsSettings),
    *(GatewaySettings, ArchiveSettings),
)


def inherited(
    environment: Mapping[str, str], *, follows_log: bool
) -> tuple[dict[str, str], list[str]]:
    """Return what parts are told of an environment, and which variables they are not.

    ``follows_log`` is of a run without a feed: it reads the log that is set.
    """
    names = OF_A_DEPLOYMENT if follows_log else (*OF_A_LOG, *OF_A_DEPLOYMENT)
    variables = [variable_name(name) for name in names]
    left_out = [name for name in variables if environment.get(name)]
    return {k: v for k, v in environment.items() if k not in variables}, left_out


def in_words(left_out: Sequence[str]) -> str:
    """Say that variables are left out, and how a run follows a log."""
    words = f"{', '.join(left_out)}: a run has its own"
    if any(variable_name(name) in left_out for name in OF_A_LOG):
        words += "; with --feed none it follows the log that they name"
    return words


def variable_name(setting: str) -> str:
    kind = next(kind for kind in _KINDS if setting in kind.model_fields)
    return variable_of(kind, setting)
