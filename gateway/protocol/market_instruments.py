"""The instruments of one market, for a gateway that serves no other. Pure."""

from dataclasses import replace

from ingest.instrument_table.known_instruments import MARKET, Instruments, has_members
from ingest.series import code_of, instrument_of
from throttle.contract.group import market_key
from throttle.contract.snapshot import WindowSnapshot
from tickthrottle_client.tick_v1 import ALL, ALL_GROUPS, is_group


class MarketInstruments(Instruments):
    """What is known of a market's instruments; of others, only that they are others."""

    def __init__(self, whole: Instruments, market: str) -> None:
        of_market = (instrument for instrument in whole if instrument.market == market)
        super().__init__(of_market, whole.version)
        self.market = market
        self._whole = whole

    def refusal(self, key: str) -> str | None:
        """Say why a key is not served; None if it is, or if nobody knows it."""
        if key in (ALL, ALL_GROUPS):
            return None
        if is_group(key):
            own = market_key(self.market)
            return None if key == own else f"of groups, {own} alone is served here"
        if has_members(key):
            is_other = self._whole.members(key) is not None
            if key.startswith(MARKET):
                is_other = key != MARKET + self.market
            is_served = self.members(key) is not None or not is_other
        else:
            named = code_of(key)
            instrument = self._whole.get(named) or self._whole.of_code(named)
            is_served = instrument is None or instrument.market == self.market
        return None if is_served else f"the market {self.market} alone is served here"

    def has(self, key: str) -> bool:
        """Say whether an instrument of the market, or a series of one, has this key."""
        return self.get(instrument_of(key)) is not None

    def part_of(self, snapshot: WindowSnapshot) -> WindowSnapshot:
        """Return what of a window the market's own channel would have brought."""
        own = market_key(self.market)
        return replace(
            snapshot,
            rows=tuple(row for row in snapshot.rows if self.has(row.isin)),
            groups=tuple(group for group in snapshot.groups if group.key == own),
        )


def served_part(snapshot: WindowSnapshot, instruments: Instruments) -> WindowSnapshot:
    """Return what of a window is served where these instruments are what is served."""
    if isinstance(instruments, MarketInstruments):
        return instruments.part_of(snapshot)
    return snapshot


def refusal_of(key: str, instruments: Instruments) -> str | None:
    """Say why a key is not served where these instruments are what is served."""
    if isinstance(instruments, MarketInstruments):
        return instruments.refusal(key)
    return None
