"""Who is called for which key. Pure."""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

Listener: TypeAlias = Callable[[dict[str, Any]], object]


class Listeners(dict[str, list[Listener]]):
    """Those who listen to each key, in the order in which they came."""

    def add(self, keys: Iterable[str], listener: Listener) -> list[str]:
        """Have somebody listen; return the keys that nobody listened to before."""
        new = []
        for key in keys:
            if key not in self:
                self[key] = []
                new.append(key)
            self[key].append(listener)
        return new

    def remove(self, keys: Iterable[str], listener: Listener) -> list[str]:
        """Have somebody listen no longer; return the keys that nobody listens to."""
        dropped = []
        for key in keys:
            listeners = self.get(key, [])
            if listener in listeners:
                listeners.remove(listener)
                if not listeners:
                    del self[key]
                    dropped.append(key)
        return dropped

    def tell(self, keys: Iterable[str], news: dict[str, Any]) -> None:
        """Call whoever listens to one of the keys, once for each key."""
        for key in keys:
            for listener in tuple(self.get(key, ())):
                listener(news)
