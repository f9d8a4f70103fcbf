"""Settings of the intake: where it listens, who may write, how much it takes."""

from pathlib import Path

from pydantic import Field, model_validator

from gateway.settings import GatewaySettings, TokenSettings, is_loopback
from ingest.settings import IngestSettings
from ingest.symbol_key import VENUE_PATTERN

MAX_HEAD_BYTES = 65_536

MOST_TRADES = 5_000
"""Most trades of one request: they are appended together."""


class IntakeSettings(IngestSettings, TokenSettings):
    """Where the intake listens, who may write, how much it takes.

    Read once at the process's entry from the environment (``REDIS_URL``, and
    ``TICKTHROTTLE_`` plus the field's name in capitals); arguments win.
    """

    intake_host: str = "127.0.0.1"
    """Address the intake listens on; off loopback it needs ``token_key_file``."""

    intake_port: int = Field(8010, ge=0, le=65_535)
    """Port the intake listens on; 0 takes a free one."""

    intake_request_bytes: int = Field(2_097_152, ge=16_384, le=2**28)
    """Largest request, head and body; a larger one is refused with 413. Of them the
    head has 64 KiB at most.
    """

    intake_waiting_bytes: int = Field(67_108_864, ge=1_048_576)
    """Most bytes of requests that are read or wait for the log; then 429."""

    intake_requests_per_second: float = Field(100, gt=0)
    """Requests a second of one address, in the long run."""

    intake_answer_s: float = Field(10, gt=0, le=300)
    """A request whose trades are not in the log after this long is answered with 503.
    """

    intake_remember_s: int = Field(600, ge=1, le=86_400)
    """How long an Idempotency-Key is remembered, with its answer."""

    issues_file: Path | None = None
    """CSV file with the issues' codes: trades may name their issue by one."""

    intake_venue: str = Field("", pattern=rf"^(?:{VENUE_PATTERN})?$")
    """Venue of symbols that have no ISIN: trades may name their issue by one, and it
    gets a key. XNAS, or XNAS=QM with letters of its own.
    """

    @model_validator(mode="after")
    def _check_host(self) -> "IntakeSettings":
        if self.token_key_file is None and not is_loopback(self.intake_host):
            raise ValueError(
                f"intake_host {self.intake_host}: off loopback a right to write has to "
                "be shown, set token_key_file"
            )
        return self

    def bounds(self) -> GatewaySettings:
        """Return the bounds of its connections, which are those of a gateway."""
        return GatewaySettings.model_construct(
            host=self.intake_host,
            port=self.intake_port,
            forwarded_allow_ips=self.forwarded_allow_ips,
            max_request_bytes=min(MAX_HEAD_BYTES, self.intake_request_bytes),
        )
