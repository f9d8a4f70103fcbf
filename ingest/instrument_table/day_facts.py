"""What a feed says of an instrument's day: previous close and halt. Pure."""

from dataclasses import dataclass, replace

from ingest.instrument_table.instrument_entry import HALTED, InstrumentEntry, read_entry


@dataclass(frozen=True, slots=True)
class DayFacts:
    """What is said of an instrument's day; None is left unsaid."""

    prev_close: str | None = None
    is_halted: bool | None = None

    def updated(self, later: "DayFacts") -> "DayFacts":
        """Return these facts with what later ones say."""
        close, is_halted = later.prev_close, later.is_halted
        return DayFacts(
            self.prev_close if close is None else close,
            self.is_halted if is_halted is None else is_halted,
        )

    def applied(self, entry: InstrumentEntry) -> InstrumentEntry:
        """Return an entry as these facts have it.

        An instrument that is not halted loses the status ``halted``, and no other.
        """
        status = entry.status
        if self.is_halted:
            status = HALTED
        elif self.is_halted is False and status == HALTED:
            status = None
        return replace(
            entry, prev_close=self.prev_close or entry.prev_close, status=status
        )


class DayNews:
    """What a feed says of days, and what of it is new; one thread notes, one takes.

    A fact is news the first time and when it changes: what somebody else has the table
    say meanwhile stands until then. Bounded by the feed's instruments.
    """

    def __init__(self) -> None:
        self._said: dict[str, DayFacts] = {}
        self._news: dict[str, DayFacts] = {}

    def note(self, isin: str, prev_close: str | None, is_halted: bool | None) -> None:
        """Take in what a frame says. Raises BadInstruments if no table may hold it."""
        said = self._said.get(isin, _NOTHING)
        news = DayFacts(
            None if prev_close == said.prev_close else prev_close,
            None if is_halted == said.is_halted else is_halted,
        )
        if news == _NOTHING:
            return
        if news.prev_close is not None:
            read_entry({"isin": isin, "prev_close": news.prev_close})
        self._said[isin] = said.updated(news)
        self._news[isin] = self._news.get(isin, _NOTHING).updated(news)

    def take(self) -> dict[str, DayFacts]:
        """Return the news by ISIN; they are news no more."""
        # One instrument at a time: meanwhile another thread may note something.
        return {isin: self._news.pop(isin) for isin in list(self._news)}


_NOTHING = DayFacts()
