"""How a setting is shown: never what only its owner may know. Pure."""

import re
from urllib.parse import urlsplit

from pydantic import SecretStr, ValidationError

MASK = "***"

_SECRET = re.compile("password|secret|token|credential|access.?key", re.IGNORECASE)


def shown(name: str, value: object) -> str:
    """Return the value of a setting as text, without what only its owner may know."""
    if isinstance(value, SecretStr):
        return MASK if value.get_secret_value() else ""
    if name.lower().endswith("url"):
        # It may hold a password.
        return server_address(str(value))
    if isinstance(value, str) and "://" in value and "@" in value:
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


def server_address(url: str) -> str:
    """Return a server's address without the password its URL may hold."""
    try:
        parts = urlsplit(url)
        # Sentinels are several, with commas between them.
        hosts = parts.netloc.rpartition("@")[2].split(",")
        ports = [urlsplit(f"//{host}").port for host in hosts]
        is_clear = all(port is None or port > 0 for port in ports)
    except ValueError:
        is_clear = False
    # What cannot be told apart may be a password.
    if not is_clear or ("@" in url and "@" not in parts.netloc):
        return MASK
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
