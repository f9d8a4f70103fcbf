"""What a feed from an exchange tells its operator, each thing when it is new."""

from collections.abc import Callable, Sequence

import structlog

from ingest.adapters.intake import Intake

NOTHING_FOR_S = 7.0
"""A feed that has taken nothing for so long, while trades came, takes nothing."""

QUIET_AFTER_S = 60.0
"""When nothing came for so long, what was left before says nothing any more."""

MOST_TOLD = 20
"""Most messages of an exchange that are logged of one connection; all are counted."""

_TOLD_CHARS = 500
_SHOWN = 5

log = structlog.get_logger()


class Uptake:
    """Compares what a feed took with what it left, from one look to the next."""

    def __init__(self) -> None:
        self._taken = self._left = 0
        self._since_s: float | None = None
        self._came_s = 0.0

    def takes_nothing(self, taken: int, left: int, now_s: float) -> bool:
        """Tell whether trades have come for a while and none was taken.

        ``taken`` and ``left`` are counts since the start. What came again was taken
        before, so it counts as taken. ``now_s`` is of any clock that never goes back.
        """
        if taken != self._taken:
            self._since_s = None
        elif left != self._left:
            self._came_s = now_s
            if self._since_s is None:
                self._since_s = now_s
        elif now_s - self._came_s > QUIET_AFTER_S:
            self._since_s = None
        self._taken, self._left = taken, left
        return self._since_s is not None and now_s - self._since_s >= NOTHING_FOR_S


class FeedLog:
    """Warns of what an intake counts; ``name`` is the feed's."""

    def __init__(
        self,
        name: str,
        intake: Intake,
        symbols: Sequence[str] = (),
        max_ahead_ms: int = 5_000,
        hide: Callable[[str], str] = str,
    ) -> None:
        """``symbols`` are followed; ``hide`` takes keys out of a text."""
        self._name = name
        self._intake = intake
        self._symbols = symbols
        self._bound_s = max_ahead_ms / 1000
        self._hide = hide
        self._uptake = Uptake()
        self._gaps = self._jumps = self._notices = 0
        self._has_told_clock = self._has_told_memory = False
        self.takes_nothing = False

    def say_news(self, now_s: float) -> None:
        """Warn of what is new: gaps, jumps, notices, clocks; of taking nothing."""
        self.say_what_came()
        self._say_clock()
        counts, numbers = self._intake.counts, self._intake.numbers
        takes_nothing = self._uptake.takes_nothing(
            counts.trades + numbers.repeated, counts.left, now_s
        )
        if takes_nothing and not self.takes_nothing:
            self._say_nothing_taken()
        self.takes_nothing = takes_nothing

    def say_what_came(self) -> None:
        """Warn of what is new in what came, whatever the time is."""
        self._say_gaps()
        self._say_notices()
        self._say_memory()

    def say_end(self) -> None:
        """Say what became of all that came, in one line; the last of the feed."""
        self.say_what_came()
        counts, numbers = self._intake.counts, self._intake.numbers
        took_nothing = counts.left and not counts.trades + numbers.repeated
        if took_nothing and not self.takes_nothing:
            self._say_nothing_taken()
        if counts.frames:
            log.info(f"{self._name}: of what came", **self._intake.account())

    def exchange_says(self, words: str, times: int) -> None:
        """Warn of an exchange's words, the ``times``-th time of a connection."""
        if times <= MOST_TOLD:
            words = self._hide(words[:_TOLD_CHARS])
            log.warning(f"{self._name}: the exchange says", words=words)

    def _say_nothing_taken(self) -> None:
        log.warning(
            f"{self._name}: nothing is taken of what comes",
            **self._intake.account(),
            followed=list(self._symbols[:_SHOWN]),
        )

    def _say_gaps(self) -> None:
        numbers = self._intake.numbers
        gap, jump = numbers.last_gap, numbers.last_jump
        if numbers.gap_count > self._gaps and gap is not None:
            log.warning(
                f"{self._name}: trades are missing",
                gaps=numbers.gap_count - self._gaps,
                symbol=gap.symbol,
                first=gap.first,
                last=gap.last,
                missing=numbers.missing,
            )
            self._gaps = numbers.gap_count
        if numbers.jumps > self._jumps and jump is not None:
            log.warning(
                f"{self._name}: numbers jump, and their trades are taken",
                jumps=numbers.jumps - self._jumps,
                symbol=jump.symbol,
                number_before=jump.first,
                number=jump.last,
            )
            self._jumps = numbers.jumps

    def _say_notices(self) -> None:
        notices = list(self._intake.counts.notices)
        for words in notices[self._notices :]:
            log.warning(f"{self._name}: {words}")
        self._notices = len(notices)

    def _say_memory(self) -> None:
        trades = self._intake.numbers.unremembered
        if trades and not self._has_told_memory:
            self._has_told_memory = True
            log.warning(
                f"{self._name}: trades come that are older than those it remembers; "
                "if they came before, they are appended again",
                trades=trades,
            )

    def _say_clock(self) -> None:
        """Warn once of a clock that is far off."""
        seconds = self._intake.clock.seconds
        if self._has_told_clock or seconds is None or abs(seconds) <= self._bound_s:
            return
        if seconds > 0:
            advice = "a job refuses trades stamped further ahead than its max_ahead_ms"
        else:
            advice = "what the exchange sends is old, or this machine's clock is wrong"
        log.warning(
            f"{self._name}: the exchange's clock differs from this machine's",
            seconds=round(seconds, 3),
            bound_s=self._bound_s,
            advice=advice,
        )
        self._has_told_clock = True
