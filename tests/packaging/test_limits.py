"""The page of limits has every bound that is a setting, with its default."""

import re

from gateway.settings import GatewaySettings
from ingest.settings import IngestSettings, variable_of
from intake.settings import IntakeSettings
from tests.paths import ROOT
from throttle.settings import ThrottleSettings

IS_LIMIT = re.compile(r"MAX_|_CAP$|BURST$|PER_SECOND$|_BYTES$|FIREHOSE_(RATE|VIEWERS)$")


def test_the_table_is_what_the_settings_are() -> None:
    """No bound is missing, none is made up, no default is another one."""
    bounds = {
        variable_of(kind, name): field.default
        for kind in (IngestSettings, ThrottleSettings, GatewaySettings, IntakeSettings)
        for name, field in kind.model_fields.items()
        if IS_LIMIT.search(variable_of(kind, name))
    }
    page = (ROOT / "docs" / "security.md").read_text("utf-8")
    rows = re.findall(r"^\| [^|]+ \| ([\d,.]+) \| `(\w+)` \| [^|]+ \|$", page, re.M)
    assert {name: float(text.replace(",", "")) for text, name in rows} == bounds
