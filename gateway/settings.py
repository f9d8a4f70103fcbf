"""Settings of the gateway, and which values they may have."""

import re
from collections.abc import Callable
from ipaddress import ip_address
from math import ceil
from pathlib import Path
from typing import Annotated, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_settings import NoDecode

from gateway.trusted_proxies import TrustedProxies
from ingest.market_hours.hours import MarketHours
from ingest.settings import ProcessSettings, TopicSettings

MOST_FIREHOSE_RATE = 5_000
"""Most trades a second that a viewer of the firehose can be shown."""

Algorithm: TypeAlias = Literal["HS256", "RS256", "ES256", "EdDSA"]

ANY_ORIGIN = "*"

_ORIGIN = re.compile(r"(?i:https?)://[A-Za-z0-9.:\[\]-]+")
_PORTS = {"http": 80, "https": 443}


def _read_by(read: Callable[[str], object]) -> AfterValidator:
    """Keep a text if it can be read."""

    def check(text: str) -> str:
        read(text)
        return text

    return AfterValidator(check)


def read_origin(text: str) -> str:
    """Return an origin as browsers send it, ``*`` as it is.

    They write small letters, and no port that is the one of the scheme anyway
    (https://html.spec.whatwg.org/#ascii-serialisation-of-an-origin). Raises ValueError
    for what is not ``scheme://host`` or ``scheme://host:port``.
    """
    if text == ANY_ORIGIN:
        return text
    if text == "null":
        raise ValueError(
            "'null' is what every page without an origin sends, as one opened as a "
            "file; serve the page, and list where it is served"
        )
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or port == 0 or not _ORIGIN.fullmatch(text):
        raise ValueError(
            f"{text!r}: must be like https://example.com or http://localhost:3000, "
            f"or {ANY_ORIGIN} for every page"
        )
    host = f"[{host}]" if ":" in host else host
    suffix = "" if port in (None, _PORTS[parts.scheme]) else f":{port}"
    return f"{parts.scheme}://{host}{suffix}"


def _read_gateway(text: str) -> str:
    """Return an operators' address, ``http://host:port``. Raises ValueError."""
    try:
        is_address = _ORIGIN.fullmatch(text) and urlsplit(text).port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise ValueError(
            "each must be like http://10.0.0.2:8001, the operators' address of "
            "another gateway"
        )
    return text


def _separated(read: Callable[[str], str]) -> BeforeValidator:
    """Read a list with commas in it, each part by a rule of its own."""

    def split(value: object) -> object:
        if not isinstance(value, str):
            return value
        return {read(part.strip()) for part in value.split(",") if part.strip()}

    return BeforeValidator(split)


class AccessSettings(ProcessSettings):
    """How the tokens are signed that clients show, and how often clients may ask,
    and who says where they are.

    Read once at the process's entry from the environment (``TICKTHROTTLE_`` plus the
    field's name in capitals); arguments win.
    """

    token_key_file: Path | None = None
    """File with the key that tokens are signed with; without it, none are asked for."""

    token_algorithm: Algorithm = "HS256"
    """How tokens are signed: a shared secret (HS256), or the issuer's public key."""

    token_audience: str | None = None
    """The ``aud`` that a token must have."""

    token_issuer: str | None = None
    """The ``iss`` that a token must have."""

    forwarded_allow_ips: Annotated[str, _read_by(TrustedProxies)] = Field(
        "127.0.0.1,::1", validation_alias="FORWARDED_ALLOW_IPS"
    )
    """Proxies whose ``X-Forwarded-For`` is believed: addresses or networks, with commas
    between them; ``*``: whoever connects."""

    requests_per_second: float = Field(100, gt=0)
    """Requests a second of one address in the long run; those of ten at once."""

    @property
    def request_burst(self) -> int:
        """Requests that one address may make at once."""
        return ceil(10 * self.requests_per_second)


class GatewaySettings(TopicSettings, AccessSettings):
    """Where the gateway listens, what it reads from, what a client may ask for.

    Read once at the process's entry from the environment (``REDIS_URL``, and
    ``TICKTHROTTLE_`` plus the field's name in capitals); arguments win.
    """

    host: str = "127.0.0.1"
    """Address the gateway listens on."""

    port: int = Field(8000, ge=0, le=65_535)
    """Port the gateway listens on; 0 takes a free one."""

    operators_host: str = "127.0.0.1"
    """Address at which operators are answered; off loopback they need a token."""

    operators_port: int | None = Field(None, ge=0, le=65_535)
    """Port at which operators are answered; unset: the one after ``port``."""

    operators_token_file: Path | None = None
    """File with the operators' token; without it, everybody at the port is an operator.
    """

    other_gateways: Annotated[frozenset[str], NoDecode, _separated(_read_gateway)] = (
        Field(frozenset(), max_length=32)
    )
    """Operators' addresses of other gateways, separated by commas: their clients are
    shown beside this one's."""

    workers: int = Field(1, ge=1, le=64)
    """Processes that share the public port; connections are spread over them."""

    follow: Annotated[
        str | None, Field(pattern=r"^(wss?|https?)://[^\s/?#@]+(/[^\s?#]*)?$")
    ] = None
    """Another gateway, such as wss://prices.example, that is followed instead of Redis.
    """

    follow_token_file: Path | None = None
    """File with the token for that gateway; it is read anew for each connection."""

    quiet_s: float = Field(0, ge=0)
    """Not ready when no trade came for this long; 0: a silence is no fault."""

    market_hours: Annotated[
        str, Field(pattern=r"^[\w/+:;,. -]*$"), _read_by(MarketHours.parse)
    ] = ""
    """When markets trade, as ``XKRX`` or ``Asia/Seoul Mon-Fri 09:00-15:20``; unset:
    unknown."""

    max_memory_bytes: int = Field(2_147_483_648, ge=1_048_576)
    """A process that uses more than this takes no more streams."""

    served_market: str | None = Field(None, min_length=1, max_length=200)
    """The one market that is served; unset: every instrument."""

    heartbeat_ms: int = Field(5_000, ge=10, le=60_000)
    """A client that was sent nothing for this long gets a heartbeat."""

    spread_ms: int = Field(0, ge=0, le=10_000)
    """A window goes out to all clients over this long, evenly, half of a window at
    most; 0: as quickly as it can."""

    max_keys: int = Field(1_024, ge=1)
    """Most keys one connection may hold; ``*`` counts as one."""

    messages_per_second: float = Field(10, gt=0)
    """Messages a second a client may send in the long run; of two seconds at once."""

    history_bytes: int = Field(67_108_864, ge=0)
    """Most memory for what instruments did in past windows; 0 keeps nothing."""

    archive_dir: Path | None = None
    """Folder of the archive, for what is older than Redis remembers; unset: none."""

    incidents_file: Path | None = None
    """Where incidents are kept beyond the gateway's end; unset: in its memory alone."""

    docs_url: str | None = Field(None, pattern=r"^https?://[^\s/]\S*[^\s/]$")
    """Where the documents are served as a site, without a slash at the end."""

    compression: bool = False
    """Whether frames are compressed for clients that ask for it."""

    allowed_origins: Annotated[frozenset[str], NoDecode, _separated(read_origin)] = (
        frozenset()
    )
    """Pages of other hosts that may stream and ask, separated by commas; ``*``: all."""

    max_clients: int = Field(10_000, ge=1)
    """Most streams of the gateway; one more is closed with 1013."""

    max_clients_per_address: int = Field(1_000, ge=1)
    """Most streams from one address; one more is closed with 1013."""

    max_connections: int = Field(4_096, ge=1)
    """Most connections that are no streams; for one more the oldest idle one is cut."""

    max_connections_per_address: int = Field(1_000, ge=1)
    """Most connections from one address that are no streams; then the same."""

    rows_per_second: float = Field(25_000, gt=0)
    """Rows a second that one address, or one holder of tokens, may have worked out."""

    refusals_per_second: float = Field(10, gt=0)
    """Refusals a second from which on an address's new connections are read late."""

    firehose_rate: int = Field(1_000, ge=0, le=MOST_FIREHOSE_RATE)
    """Most trades a second a viewer of the firehose is shown; 0: there is none."""

    firehose_public: bool = False
    """Whether the firehose is at the public port, too."""

    @property
    def message_burst(self) -> int:
        """Messages a client may send at once."""
        return ceil(2 * self.messages_per_second)

    @property
    def not_here(self) -> str | None:
        """Where to ask for what needs Redis, in a sentence; None where it is here."""
        if self.follow is None:
            return None
        return f"this gateway follows {self.follow}: ask there"

    @property
    def has_firehose(self) -> bool:
        """Whether there is a firehose.

        Not of a gateway of one market: the log holds every instrument. Nor of one that
        follows another: the log is not there.
        """
        is_whole = self.served_market is None and self.follow is None
        return self.firehose_rate > 0 and is_whole

    @property
    def port_for_operators(self) -> int:
        """The port operators are answered at; 0 for a free one."""
        if self.operators_port is not None:
            return self.operators_port
        return self.port + 1 if self.port else 0

    @model_validator(mode="after")
    def _check_operators(self) -> "GatewaySettings":
        check_operators_port(self.port, self.port_for_operators)
        if self.follow is not None and self.served_market is not None:
            raise ValueError(
                f"served_market {self.served_market!r}: with follow the upstream says "
                "what is served; leave one of the two out"
            )
        if self.follow_token_file is not None and self.follow is None:
            raise ValueError("follow_token_file: only with follow")
        if self.operators_token_file is None and not is_local_host(self.operators_host):
            raise ValueError(
                f"operators_host {self.operators_host}: off loopback operators need a "
                "token, set operators_token_file"
            )
        return self


def check_operators_port(port: int, operators_port: int) -> None:
    """Raise ValueError unless operators have a port of their own; 0 is a free one."""
    if operators_port > 65_535:
        raise ValueError(
            f"port {port}: the one after it is for operators, and there is none; "
            "take a lower one, or set operators_port"
        )
    if operators_port and operators_port == port:
        raise ValueError(f"operators_port {operators_port}: must be another than port")


def is_local_host(host: str) -> bool:
    """Say whether only this machine can reach what listens at this address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
