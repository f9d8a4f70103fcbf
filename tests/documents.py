"""The documents for operators, as one text."""

from tests.paths import ROOT

PAGES = (
    "settings",
    "archive",
    "running",
    "inspecting",
    "observing",
    "alerts",
    "operators",
    "redis",
    "market",
    "kafka",
    "spark",
    "failures",
)
OPERATIONS = "\n".join(
    (ROOT / "docs" / f"{page}.md").read_text("utf-8") for page in PAGES
)
