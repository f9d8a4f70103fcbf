"""A client of tickthrottle's stream for scripts and services."""

from tickthrottle_client.tick_client import Item, State, TickClient, TickError, Token

__all__ = ["Item", "State", "TickClient", "TickError", "Token"]
