"""Settings of the intake: where it listens, who may write."""

from pathlib import Path

from pydantic import Field, model_validator

from gateway.settings import AccessSettings, GatewaySettings, is_local_host
from ingest.settings import IngestSettings
from tickthrottle_client.key_v1 import VENUE_PATTERN

MOST_TRADES = 5_000
"""Most trades of one request: they are appended together."""


class IntakeSettings(IngestSettings, AccessSettings):
    """Where the intake listens, who may write.

    Read once at the process's entry from the environment (``REDIS_URL``, and
    ``TICKTHROTTLE_`` plus the field's name in capitals); arguments win.
    """

    intake_host: str = "127.0.0.1"
    """Address the intake listens on; off loopback it needs ``token_key_file``."""

    intake_port: int = Field(8010, ge=0, le=65_535)
    """Port the intake listens on; 0 takes a free one."""

    instruments_file: Path | None = None
    """CSV file with the instruments' codes: trades may name their instrument by one."""

    intake_venue: str = Field("", pattern=rf"^(?:{VENUE_PATTERN})?$")
    """Venue of symbols that have no ISIN: trades may name their instrument by one, and
    it gets a key. XNAS, or XNAS=QM with letters of its own.
    """

    @model_validator(mode="after")
    def _check_host(self) -> "IntakeSettings":
        if self.token_key_file is None and not is_local_host(self.intake_host):
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
        )
