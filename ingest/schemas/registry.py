"""A schema registry of Confluent's interface: schemas by their number, and subjects."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from urllib.parse import unquote

import fastavro  # noqa: F401 - of the same extra: the one that is named if missing
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.common._httpx_compat import httpx
from confluent_kafka.schema_registry.error import SchemaRegistryError

from ingest.schemas.avro_schema import AvroSchema, BadSchema
from ingest.schemas.framing import BadValue, unframed
from tickthrottle_client.log_v1 import LogAway, LogUnusable
from tickthrottle_client.server_url import server_address, split_url

ANSWER_S = 5.0
"""A registry that has not answered for this long is away."""

REMEMBERED_S = 10.0
"""A schema that is not there, or not to be read, is asked for again after that."""

MOST_SCHEMAS = 1_000
"""So many schemas are remembered, the newest."""

_NO_SCHEMA = 40403
_LONGEST_TOLD = 300


class RegistryAway(LogAway):
    """The registry does not answer now; it may pass."""


class RegistryRefused(LogUnusable):
    """The registry does not do as it is asked, and no waiting cures that."""


class SchemaRegistry:
    """Asks a registry, each schema once.

    Methods raise RegistryAway and RegistryRefused.
    ``url`` may hold a user and a password, which no message has.
    """

    def __init__(self, url: str, clock_s: Callable[[], float] = time.monotonic) -> None:
        parts = split_url(url)
        user, _, hosts = parts.netloc.rpartition("@")
        options = {
            "url": ",".join(
                f"{parts.scheme}://{host}{parts.path}" for host in hosts.split(",")
            ),
            "timeout": ANSWER_S,
            "max.retries": 0,
        }
        if user:
            name, _, password = user.partition(":")
            options["basic.auth.user.info"] = f"{unquote(name)}:{unquote(password)}"
        self._address = server_address(url)
        self._client = SchemaRegistryClient(options)
        self._clock_s = clock_s
        self._schemas: dict[int, AvroSchema] = {}
        self._bad: dict[int, tuple[float, str]] = {}

    def register(self, subject: str, schema: str) -> int:
        """Register a schema under a subject, if it is not there; return its number."""
        with self._asking(f"subject {subject}"):
            return self._client.register_schema(subject, Schema(schema, "AVRO"))

    def read(self, value: bytes) -> Any:
        """Return what a framed value stands for.

        Raises BadValue if it is none, or its schema cannot be had or is not read.
        """
        schema_id, body = unframed(value)
        schema = self._schemas.get(schema_id) or self._ask(schema_id)
        return schema.read(body)

    def _ask(self, schema_id: int) -> AvroSchema:
        until_s, why = self._bad.get(schema_id, (0.0, ""))
        if self._clock_s() < until_s:
            raise BadValue(why)
        try:
            with self._asking(f"schema {schema_id}"):
                told = self._client.get_schema(schema_id)
            if (kind := told.schema_type or "AVRO") != "AVRO":
                raise BadSchema(f"is of {kind}, not of Avro")
            if told.references:
                raise BadSchema(
                    "refers to schemas of other subjects, which is not read"
                )
            schema = AvroSchema(told.schema_str or "")
        except (BadSchema, _NotThere) as error:
            why = f"schema {schema_id} of {self._address}: {error}"
            _remember(self._bad, schema_id, (self._clock_s() + REMEMBERED_S, why))
            raise BadValue(why) from None
        _remember(self._schemas, schema_id, schema)
        return schema

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        where = f"schema_registry_url {self._address}"
        try:
            yield
        except SchemaRegistryError as error:
            status = error.http_status_code
            told = f"{str(error.error_message)[:_LONGEST_TOLD]} (HTTP {status})"
            if status in (408, 429) or status >= 500:
                raise RegistryAway(f"{where}: {told}") from None
            if error.error_code == _NO_SCHEMA:
                raise _NotThere("the registry has none") from None
            if status in (401, 403):
                told = f"access refused: {told}"
            raise RegistryRefused(f"{where}: {what}: {told}") from None
        except httpx.TransportError as error:
            raise RegistryAway(
                f"no schema registry answers at {self._address} "
                f"({str(error) or type(error).__name__})"
            ) from None
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            # Something answers, and not as a registry does.
            raise RegistryRefused(
                f"{where}: {what}: the answer is none of a schema registry's: "
                f"{type(error).__name__}"
            ) from None


class _NotThere(Exception):
    """The registry has no such schema."""


# None is let go of, with its open connection: settings name one, or a few.
@cache
def open_registry(url: str) -> SchemaRegistry:
    """Return what asks the registry there, the same one for a process's life."""
    return SchemaRegistry(url)


def _remember(known: dict[int, Any], schema_id: int, value: Any) -> None:
    known[schema_id] = value
    while len(known) > MOST_SCHEMAS:
        known.pop(next(iter(known)))
