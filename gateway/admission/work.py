"""What an answer costs a gateway, in rows, and who has spent what he may. Pure.

The unit is a row: encoding an instrument's latest trade, some ten microseconds of a
core. Time is an argument.
"""

from collections.abc import Iterable

from gateway.admission.limits import Budgets, TokenBucket
from gateway.admission.shared_figures import Cells

BURST_S = 40
"""Who has asked for nothing lately may spend the rows of so many seconds at once."""

HEAVY_SHARE = 0.5
"""Who has spent so much of his rows is taken to be who makes a late gateway late."""

ROWS_A_DAY = 3
"""The statistics of an instrument's day: decimals, decoded and encoded."""

ROWS_A_TREND = 5
"""An instrument's closes of half an hour, picked out of its windows and encoded."""

ROWS_A_BAR = 2
"""A bar that is read, whether or not it is told: a day has 1,440 of a minute."""

ROWS_A_SEGMENT = 300
"""A file of the archive that is opened."""

ROWS_A_STREAM = 200
"""A stream that is opened."""

ROWS_A_MESSAGE = 5
CHARS_A_ROW = 32
"""A message of a client, and each so many characters of it: a key or two."""

SNAPSHOT_SHARE = 0.25
"""Whole boards in snapshots may take this part of what an address may spend at once."""

STREAM_ROWS_PER_S = 1_000
STREAM_BURST_ROWS = 30_000
"""What one stream may have sent in snapshots: some ten boards at once, of 2,900 rows.
"""


class WorkRefused(Exception):
    """Whoever asks has spent his rows; ``wait_ms`` is until he has one again."""

    def __init__(self, reason: str, wait_ms: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.wait_ms = wait_ms


class WorkBudget:
    """Counts rows against whoever asked for them: an address, a holder of tokens.

    Who has a row left is answered, whatever the answer costs. What it costs is known
    afterwards only; who is overdrawn then waits. Raises WorkRefused.
    """

    def __init__(
        self, rows_per_s: float, moments: Cells | None = None, key: bytes = b""
    ) -> None:
        burst = max(1, round(rows_per_s * BURST_S))
        self._rows_per_s = rows_per_s
        self._budgets = Budgets(rows_per_s, burst, moments, key)

    def check(self, payers: Iterable[str], now_s: float, share: float = 1) -> None:
        """Return if each of the payers has a row left. Raises WorkRefused.

        Only a ``share`` of what each may spend at once counts.
        """
        wait_ms = max(self._budgets.wait_ms(payer, now_s, share) for payer in payers)
        if wait_ms:
            rate = f"{self._rows_per_s:g} rows a second of an address or a token"
            raise WorkRefused(f"more work than {rate}", wait_ms)

    def charge(self, payers: Iterable[str], rows: float, now_s: float) -> None:
        """Take what an answer has cost from each of the payers."""
        for payer in payers:
            self._budgets.charge(payer, rows, now_s)

    def is_heavy(self, address: str, now_s: float) -> bool:
        """Say whether an address has had far more worked out than others ask for."""
        return self._budgets.spent_share(address, now_s) >= HEAVY_SHARE

    def heaviest(self, addresses: Iterable[str], now_s: float) -> str | None:
        """Return which heavy address has spent most, None if none is heavy."""
        shares = {a: self._budgets.spent_share(a, now_s) for a in addresses}
        heaviest = max(shares, key=lambda address: shares[address], default=None)
        if heaviest is None or shares[heaviest] < HEAVY_SHARE:
            return None
        return heaviest


def check_snapshots(rows: TokenBucket, now_s: float) -> None:
    """Return if a stream has a row of snapshots left. Raises WorkRefused."""
    wait_ms = rows.wait_ms(now_s)
    if wait_ms:
        rate = f"{STREAM_ROWS_PER_S:,} rows of snapshots a second of a stream"
        raise WorkRefused(f"more than {rate}", wait_ms)


def message_rows(text: str) -> int:
    """Return what it costs to read a client's message and to answer it."""
    return ROWS_A_MESSAGE + len(text) // CHARS_A_ROW


def payers_of(address: str, holder: str) -> tuple[str, ...]:
    """Return against whom work is counted: an address, and the holder of a token."""
    return (address, holder) if holder else (address,)
