"""Settings of the gateway."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from gateway.origins import check_origins
from gateway.tokens import Algorithm, TokenReader


class GatewaySettings(BaseSettings):
    """Where the gateway listens, what it reads from, what a client may ask for.

    Read once at the process's entry from the environment (``REDIS_URL``, and
    ``TICKTHROTTLE_`` plus the field's name in capitals); arguments win.
    """

    model_config = SettingsConfigDict(
        env_prefix="TICKTHROTTLE_", frozen=True, extra="forbid", populate_by_name=True
    )

    redis_url: str = Field("redis://127.0.0.1:6379", validation_alias="REDIS_URL")
    """Address of the Redis or Valkey server the throttle publishes to."""

    namespace: str = Field("tt", pattern=r"^[A-Za-z0-9_.-]{1,32}$")
    """Prefix of every key and channel."""

    host: str = "127.0.0.1"
    """Address the gateway listens on."""

    port: int = Field(8000, ge=0, le=65_535)
    """Port the gateway listens on; 0 takes a free one."""

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

    @field_validator("allowed_origins", mode="before")
    @classmethod
    def _split_origins(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        origins = [part.strip() for part in value.split(",") if part.strip()]
        check_origins(origins)
        return origins

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
