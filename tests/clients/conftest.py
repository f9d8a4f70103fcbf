"""The gateway's publisher, for tests of its clients."""

from tests.gateway.conftest import publisher

__all__ = ["publisher"]
