"""A stream of windows, and a database, for the tests of the archive."""

from collections.abc import Iterator

import pytest
import redis

from tests.archive.postgres.server import PostgresServer, find_programs
from tests.conftest import skip_or_fail
from tests.gateway.publisher import Publisher


@pytest.fixture(scope="session")
def running_postgres() -> Iterator[PostgresServer]:
    programs = find_programs()
    if programs is None:
        skip_or_fail("PostgreSQL is not installed (on Debian: postgresql)")
        raise AssertionError
    server = PostgresServer(programs)
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def server(running_postgres: PostgresServer) -> PostgresServer:
    for name in ("archive", "windows", "rows", "bar_batches", "bars", "statuses"):
        running_postgres.ask(f"DROP TABLE IF EXISTS tickthrottle_{name}")
    return running_postgres


@pytest.fixture
def publisher(client: redis.Redis) -> Publisher:
    return Publisher(client)
