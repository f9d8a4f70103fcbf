"""The users of Redis that the documents have, one for each kind of process."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import redis

from tests.paths import ROOT


def documented(section: str = "Rights") -> dict[str, list[str]]:
    """Return the rules of each user in a section of the document."""
    text = (ROOT / "docs" / "redis.md").read_text("utf-8")
    part = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    lines = [line.split() for line in part.splitlines() if line.startswith("user ")]
    return {name: rules for _, name, *rules in lines}


@contextmanager
def documented_users(client: redis.Redis) -> Iterator[None]:
    """Give the server these users."""
    users = documented()
    for name, rules in users.items():
        client.execute_command("ACL", "SETUSER", name, *rules)
    yield
    client.execute_command("ACL", "DELUSER", *users)


def url_of(user: str, redis_url: str) -> str:
    """Return the server's address for a user."""
    parts = urlsplit(redis_url)
    return parts._replace(netloc=f"{user}:password@{parts.netloc}").geturl()
