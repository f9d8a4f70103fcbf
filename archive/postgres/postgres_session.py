"""A connection to the archive's database that is made when it is needed."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg

from archive.storing.archive_sink import SinkAway, SinkRefused
from ingest.process.redact import server_address

CONNECT_S = 5

_OPTIONS = {
    "timezone": "UTC",
    "statement_timeout": 300_000,
    "lock_timeout": 10_000,
    # Of a process that is frozen in the middle, nothing stays locked for longer.
    "idle_in_transaction_session_timeout": 10_000,
}

# Of what the server says, what no waiting cures, wherever it has no code.
_LASTING_WORDS = (
    "authentication failed",
    "no password supplied",
    "does not exist",
    "no pg_hba.conf entry",
    "invalid",
)
# The class of a code: connection, resources, shutdown or a time that was up, a lost
# race, a transaction that was read-only, because a standby has not taken over yet.
_PASSING_CODES = ("08", "53", "57P", "57014", "40", "25006", "25P03", "55P03", "58")

_END_OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE application_name = %s AND pid <> pg_backend_pid()
  AND usename = current_user AND datname = current_database()
"""


class PostgresSession:
    """One connection under the archive's ``name``, for one thread.

    Raises SinkAway for what may pass, SinkRefused for what does not.
    """

    def __init__(self, url: str, name: str) -> None:
        self._url = url
        self._application = f"tickthrottle archive {name}"
        self._connection: psycopg.Connection | None = None

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Cursor]:
        """Give a cursor of a transaction, connecting if there is no connection."""
        try:
            if self._connection is None or self._connection.closed:
                options = " ".join(
                    f"-c {key}={value}" for key, value in _OPTIONS.items()
                )
                self._connection = psycopg.connect(
                    self._url,
                    connect_timeout=CONNECT_S,
                    application_name=self._application,
                    options=options,
                    # A server that is gone without a word: noticed in half a minute.
                    keepalives_idle=10,
                    keepalives_interval=5,
                    keepalives_count=3,
                    tcp_user_timeout=30_000,
                )
            with self._connection.transaction(), self._connection.cursor() as cursor:
                yield cursor
        except psycopg.Error as error:
            self.close()
            words = " ".join(str(error).split())
            # The address that was tried may be shown, never a password.
            sentence = f"postgres_url {server_address(self._url)}: {words}"
            if _may_pass(error, words):
                raise SinkAway(sentence) from None
            raise SinkRefused(sentence) from None

    def end_others(self) -> None:
        """End sessions of an earlier process of this name, which may be frozen."""
        with self.transaction() as cursor:
            cursor.execute(_END_OTHERS.encode(), [self._application])

    def interrupt(self) -> None:
        """Cut the connection, in whatever thread: whoever waits on it gets an error."""
        connection = self._connection
        if connection is not None:
            with (
                suppress(OSError, psycopg.Error),
                socket.socket(fileno=os.dup(connection.fileno())) as line,
            ):
                line.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _may_pass(error: psycopg.Error, words: str) -> bool:
    if error.sqlstate is not None:
        return error.sqlstate.startswith(_PASSING_CODES)
    if not isinstance(error, psycopg.OperationalError):
        return False
    return not any(word in words for word in _LASTING_WORDS)
