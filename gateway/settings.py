"""Settings of the gateway."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator, model_validator
from pydantic_settings import NoDecode

from gateway.operators import MIN_TOKEN_CHARS, is_loopback
from gateway.origins import check_origins
from gateway.tokens import Algorithm, TokenReader
from ingest.kafka_address import KafkaTopic
from ingest.kafka_settings import TopicSettings
from ingest.log import LogUnusable


class GatewaySettings(TopicSettings):
    """Where the gateway listens, what it reads from, what a client may ask for.

    Read once at the process's entry from the environment (``REDIS_URL``, and
    ``TICKTHROTTLE_`` plus the field's name in capitals); arguments win.
    """

    redis_url: str = Field("redis://127.0.0.1:6379", validation_alias="REDIS_URL")
    """Address of the Redis or Valkey server the throttle publishes to."""

    namespace: str = Field("tt", pattern=r"^[A-Za-z0-9_.-]{1,32}$")
    """Prefix of every key and channel."""

    host: str = "127.0.0.1"
    """Address the gateway listens on."""

    port: int = Field(8000, ge=0, le=65_535)
    """Port the gateway listens on; 0 takes a free one."""

    ops_host: str = "127.0.0.1"
    """Address operators are answered at; off loopback, only with ``ops_token_file``."""

    ops_port: int | None = Field(None, ge=0, le=65_535)
    """Port operators are answered at; without it, the one after ``port``."""

    ops_token_file: Path | None = None
    """File with the token operators show; without it, whoever reaches the port is one.
    """

    quiet_s: float = Field(0, ge=0)
    """The gateway is not ready when no trade came for so long; 0: that is no fault."""

    max_memory_bytes: int = Field(2_147_483_648, ge=1_048_576)
    """A process that uses more than this takes no more streams."""

    max_loop_lag_ms: int = Field(500, ge=1)
    """A process that is late by more than this, for 2 s, takes no more streams."""

    heartbeat_ms: int = Field(5_000, ge=10, le=60_000)
    """A client that was sent nothing for so long gets a heartbeat."""

    max_keys: int = Field(1_024, ge=1)
    """Most keys one connection may hold; ``*`` counts as one."""

    ops_per_second: float = Field(10, gt=0)
    """Messages a second a client may send in the long run."""

    ops_burst: int = Field(20, ge=1)
    """Messages a client may send at once."""

    max_message_bytes: int = Field(65_536, ge=1_024)
    """Largest message a client may send; a larger one closes with 1009."""

    snapshot_items: int = Field(500, ge=1)
    """Most items in one piece of a snapshot."""

    windows_limit: int = Field(100, ge=1, le=1_000)
    """Most windows one REST request may ask for."""

    issues_file: Path | None = None
    """CSV file with the issues' names, codes, markets, sectors; see ``issues.py``."""

    history_bytes: int = Field(67_108_864, ge=0)
    """Most memory for what issues did in past windows; 0 keeps nothing."""

    slow_close_s: float = Field(15, gt=0)
    """A client that takes not one byte for so long is closed with 4408."""

    compression: bool = False
    """Whether frames are compressed for clients that ask for it."""

    allowed_origins: Annotated[frozenset[str], NoDecode] = frozenset()
    """Pages of other hosts that may open a stream, separated by commas; ``*``: all."""

    max_clients: int = Field(10_000, ge=1)
    """Most streams of the process; one more is closed with 1013."""

    max_clients_per_address: int = Field(1_000, ge=1)
    """Most streams from one address; one more is closed with 1013."""

    first_keys_s: float = Field(30, gt=0)
    """A stream that has asked for nothing for so long is closed with 1008."""

    request_s: float = Field(10, gt=0)
    """A connection that takes longer to send the head of a request is cut."""

    max_stream_s: float = Field(86_400, gt=0)
    """A stream that is so old is closed with 1012, after a notice."""

    token_key_file: Path | None = None
    """File with the key that tokens are signed with; without it, none are asked for."""

    token_algorithm: Algorithm = "HS256"
    """How tokens are signed: a shared secret (HS256), or the issuer's public key."""

    token_audience: str | None = None
    """What a token's ``aud`` has to be."""

    token_issuer: str | None = None
    """What a token's ``iss`` has to be."""

    auth_s: float = Field(5, gt=0)
    """A stream that has shown no token for so long is closed with 4501."""

    @property
    def operators_port(self) -> int:
        """The port operators are answered at; 0 for a free one."""
        if self.ops_port is not None:
            return self.ops_port
        return self.port + 1 if self.port else 0

    @model_validator(mode="after")
    def _check_ops(self) -> "GatewaySettings":
        port = self.operators_port
        if port > 65_535 or (port and port == self.port):
            raise ValueError(f"ops_port {port}: a port of its own, other than port")
        if self.ops_token_file is None and not is_loopback(self.ops_host):
            raise ValueError(
                f"ops_host {self.ops_host}: off loopback operators need a token, "
                "set ops_token_file"
            )
        return self

    @field_validator("allowed_origins", mode="before")
    @classmethod
    def _split_origins(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        origins = [part.strip() for part in value.split(",") if part.strip()]
        check_origins(origins)
        return origins

    def read_topic(self) -> KafkaTopic | None:
        """Return the topic that is the log, None if the log is not Kafka's.

        Raises ValueError with one sentence if ``kafka_config`` cannot be used.
        """
        try:
            return self.topic()
        except LogUnusable as error:
            raise ValueError(str(error)) from None

    def create_token_reader(self) -> TokenReader | None:
        """Read the key; None if no tokens are asked for.

        Raises ValueError with one sentence if there is no such file, or no such key.
        """
        if self.token_key_file is None:
            return None
        try:
            key = self.token_key_file.read_text(encoding="utf-8").strip()
            return TokenReader(
                key, self.token_algorithm, self.token_audience, self.token_issuer
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ValueError(
                f"token_key_file {self.token_key_file}: {reason}"
            ) from None

    def read_ops_token(self) -> str | None:
        """Read the operators' token; None if none is asked for.

        Raises ValueError with one sentence if there is no such file, or none in it.
        """
        if self.ops_token_file is None:
            return None
        try:
            token = self.ops_token_file.read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ValueError(
                f"ops_token_file {self.ops_token_file}: {reason}"
            ) from None
        if len(token) < MIN_TOKEN_CHARS or not token.isascii():
            raise ValueError(
                f"ops_token_file {self.ops_token_file}: a token has "
                f"{MIN_TOKEN_CHARS} characters of ASCII or more"
            )
        return token
