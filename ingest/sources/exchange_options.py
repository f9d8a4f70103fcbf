"""How an exchange is followed, what of it, and what is kept. Pure."""

from pathlib import Path

from pydantic import Field

from ingest.conditions.table_choice import TableOption
from ingest.files.file_form import FrozenOptions


class ExchangeOptions(FrozenOptions):
    """What is followed of an exchange, and what is kept of it."""

    symbols: str = ""
    """Symbols, in any case and with any separator, commas between them, or ``*`` for
    all of its own list; without them what docs/adapters.md says of the adapter.
    """

    instruments_file: Path | None = None
    """Instrument list, as CSV, with the ISINs of symbols: columns isin and symbol, or
    code.
    """

    updates: TableOption | None = None
    """The table of sale conditions that says which trades set the last price, widen the
    range and add to the volume, in place of the adapter's own: a path such as
    ./table.csv; see docs/rows.md.
    """

    silence_s: float | None = Field(None, ge=0.1, le=86_400)
    """Connect again when nothing came for so many seconds; the adapter's own if unset.
    """

    max_ahead_ms: int = Field(5_000, ge=1, le=86_400_000)
    """Warn when the exchange's clock differs by more than this, as the job would
    refuse its trades.
    """

    url: str | None = None
    """Address of the WebSocket, in place of the exchange's: a test network, a proxy."""

    rest_url: str | None = None
    """Address of its lists and keys, in place of the exchange's."""

    record_raw: Path | None = None
    """Keep every frame in this file (JSON lines, gzip), to be played again."""

    replay_raw: Path | None = None
    """Play a raw tape through the adapter, in place of the exchange."""
