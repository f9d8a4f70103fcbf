"""How a setting is shown: never what only its owner may know. Pure."""

import re

from pydantic import SecretStr, ValidationError

from tickthrottle_client.server_url import MASK, server_address

__all__ = ["server_address"]

_SECRET = re.compile("password|secret|token|credential|access.?key", re.IGNORECASE)


def shown(name: str, value: object) -> str:
    """Return the value of a setting as text, without what only its owner may know."""
    if isinstance(value, SecretStr):
        return MASK if value.get_secret_value() else ""
    if name.lower().endswith("url"):
        # It may hold a password.
        return server_address(str(value))
    is_place = isinstance(value, str) and ("://" in value or "servers" in name)
    if is_place and "@" in str(value):
        # An address where none with a user belongs.
        return MASK
    if isinstance(value, dict):
        return ", ".join(
            f"{option}={MASK if _SECRET.search(option) else text}"
            for option, text in value.items()
        )
    if isinstance(value, frozenset):
        return ",".join(sorted(map(str, value)))
    return "" if value is None else str(value)


def problems_of(error: ValidationError) -> str:
    """Return in a sentence which settings are bad, with their values and rules."""
    problems = []
    for problem in error.errors():
        rule = problem["msg"].removeprefix("Value error, ")
        name = ".".join(map(str, problem["loc"]))
        # A rule about several settings names them itself.
        is_of_all = not problem["loc"]
        value = "" if is_of_all else f"{name} {shown(name, problem['input'])}: "
        problems.append(value + rule)
    return "; ".join(problems)
