"""The browser of the end-to-end tests, for the report's page; no run of others."""

from tests.cli.conftest import no_pipeline_runs_here
from tests.e2e.conftest import browser, page, visitor

__all__ = ["browser", "no_pipeline_runs_here", "page", "visitor"]
