"""A gateway with one empty window, and who publishes to it."""

from tests.gateway.conftest import gateway, publisher

__all__ = ["gateway", "publisher"]
