"""The browser of the end-to-end tests, for the report's page."""

from tests.e2e.conftest import browser, page, visitor

__all__ = ["browser", "page", "visitor"]
