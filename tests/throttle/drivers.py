"""How tests make test drivers: by the rules alone, and through real Spark."""

from collections.abc import Callable

from throttle.testing.driver import ThrottleDriver

MakeDriver = Callable[..., ThrottleDriver]
