"""Which variables of an environment set nothing. Pure.

Keys of exchanges, such as ``TICKTHROTTLE_ACME_TOKEN``, are for feeds alone.
"""

import re
from collections.abc import Iterable, Iterator

from archive.settings import ArchiveSettings
from cli.local.settings import RunSettings
from gateway.settings import GatewaySettings
from ingest.settings import IngestSettings, variables_of
from intake.settings import IntakeSettings
from throttle.settings import AnalyticsSettings, ThrottleSettings

KINDS = (
    *(IngestSettings, ThrottleSettings, AnalyticsSettings, GatewaySettings),
    *(IntakeSettings, ArchiveSettings, RunSettings),
)
"""Every class of settings: together they are all that can be set."""

_IS_OURS = re.compile(r"TICKTHROTTLE_")
_IS_KEY_OF_A_FEED = re.compile(r".*(?:KEY|SECRET|TOKEN|PASSWORD|USER)(?:_FILE)?")

_OPTIONS = {
    "FEED_SYMBOLS": "symbols",
    **{name.upper(): name for name in RunSettings.only_options - {"feed_symbols"}},
}
"""What only `run` takes, and no variable sets."""


def variables() -> frozenset[str]:
    return frozenset(v for kind in KINDS for v in variables_of(kind).values())


def unknown_variables(environment: Iterable[str]) -> Iterator[str]:
    """Yield a sentence on each variable under the product's prefix that sets nothing.

    A setting of another process counts as known: processes may share an environment.
    """
    names = {name for name in environment if _IS_OURS.match(name)} - variables()
    for name in sorted(names):
        option = _OPTIONS.get(name.partition("_")[2])
        if option is not None:
            yield f"{name} is not a setting: it is the option --{option} of run"
        elif not _IS_KEY_OF_A_FEED.fullmatch(name):
            yield f"{name} is not a setting"
