"""What polling costs, and whether it delays those who are pushed to.

One gateway process on one core, as in fanout.py; on the other core the clients of the
stream and, with the lowest priority, those that poll. Every window has all issues, so
every window makes every entity tag worthless. First the pollers are alone; then they
ask while windows go out to thousands of clients, one kind of load after the other, so
that the machine's moods fall on all of them; between any two of the others come a
window while nobody asks and one for the audience, which is what the claim is about.

`audience` comes at a fixed rate, whether or not it is answered: 500 pages that poll
their issue every 10 s and 20 programs that poll the whole board every 2 s; at such
intervals an answer is always new. The other loads are as much as the gateway can
answer: four connections that ask again at once.
"""

import argparse
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from fanout import ISSUES, KEYS_EACH, WINDOW_S, Bench, Delivery, started
from machine import end_on_signals, percentile
from pollers import Answers, Load, Pollers, pollers

from bench.load.machine import describe_machine
from ingest.trade import Trade
from tests.gateway.samples import FIRST_WINDOW
from throttle.snapshot import Row, encode_version

MOST_RISE = 0.1
ENOUGH_WINDOWS = 16
BOARD = "/v1/quotes"
ONE = f"/v1/quotes/{ISSUES[7]}"
CONNECTIONS = 4
LOADS = (
    Load("board", [(BOARD, 1)], connections=CONNECTIONS),
    Load("board, tag", [(BOARD, 1)], is_conditional=True, connections=CONNECTIONS),
    Load("one issue", [(ONE, 1)], connections=CONNECTIONS),
    Load("one issue, tag", [(ONE, 1)], is_conditional=True, connections=CONNECTIONS),
)


def main() -> None:
    """Measure polling alone, then beside the stream."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=5_000, help="of the stream")
    parser.add_argument("--rounds", type=int, default=6, help="windows of each load")
    parser.add_argument("--pages", type=int, default=500, help="of the audience")
    parser.add_argument("--programs", type=int, default=20, help="of the audience")
    arguments = parser.parse_args()
    end_on_signals()
    audience = create_audience(arguments.pages, arguments.programs)
    loads = [audience, *LOADS]
    with started() as bench, pollers(bench.port, core=1) as asking:
        rest = Rest(bench, asking)
        rest.warm_up(loads)
        alone = rest.measure([None, *loads], max(3, arguments.rounds // 2), clients=0)
        bench.connect(arguments.clients, KEYS_EACH)
        rest.warm_up([None])
        turns = [turn for load in LOADS for turn in (None, audience, load)]
        beside = rest.measure(turns, arguments.rounds, arguments.clients)
    print(f"Machine: {describe_machine()}")
    report_answers(loads, alone, beside)
    report_stream(beside, arguments.clients)


def create_audience(pages: int, programs: int) -> Load:
    """Return what an ordinary audience asks for."""
    watched = ISSUES[:: len(ISSUES) // 100]
    each = pages / 10 / len(watched)
    paths = [(f"{BOARD}/{isin}", each) for isin in watched]
    return Load("audience", [*paths, (BOARD, programs / 2)])


@dataclass
class Measured:
    """What came of the windows of one load."""

    answers: Answers = field(default_factory=Answers)
    windows: list[Delivery] = field(default_factory=list)
    gateway_s: list[float] = field(default_factory=list)
    """How long the gateway used its core around each window."""

    def all_ms(self) -> list[float]:
        """Return when each client had each window."""
        return [t for window in self.windows for t in window.times_ms]

    def p99_ms(self) -> float:
        """Return the median of the windows' 99th percentiles."""
        return median(percentile(w.times_ms, 0.99) for w in self.windows)


Results = dict[str, Measured]
NOBODY = "nobody"


class Rest:
    """Windows are published, and somebody asks."""

    def __init__(self, bench: Bench, asking: Pollers) -> None:
        self._bench = bench
        self._asking = asking
        self._seq = 1
        self._clients = 0

    def warm_up(self, loads: Iterable[Load | None]) -> None:
        """Publish a window under each load."""
        for load in loads:
            self._publish(load)

    def measure(
        self, loads: Iterable[Load | None], rounds: int, clients: int
    ) -> Results:
        """Publish windows under each load in turn; so many clients get them."""
        self._clients = clients
        found: Results = {}
        for _ in range(rounds):
            for load in loads:
                name = load.name if load else NOBODY
                measured = found.setdefault(name, Measured())
                busy_s = self._bench.busy_s()
                answers, delivery = self._publish(load)
                measured.gateway_s.append(self._bench.busy_s() - busy_s)
                measured.answers.add(answers)
                measured.windows.append(delivery)
        return found

    def _publish(self, load: Load | None) -> tuple[Answers, Delivery]:
        self._seq += 1
        rows = [make_full_row(isin, self._seq) for isin in ISSUES]
        if load is not None:
            self._asking.start(load)
        delivery = self._bench.publish_window(rows, self._clients)
        # A whole second of them is beside the window that goes out or follows it.
        time.sleep(WINDOW_S / 4)
        return self._asking.stop() if load is not None else Answers(), delivery


def make_full_row(isin: str, seq: int) -> Row:
    """Return a row with everything the simulated market says of a trade."""
    extra = {"side": "B", "cum_volume": 1_204_411 + seq, "cum_value": 240_141_005_000}
    trade = Trade(isin, FIRST_WINDOW * 1_000 + seq, seq, "199500", "40", extra)
    return Row(isin, encode_version(trade.time_us, seq, seq), 1, trade.to_row())


def report_answers(loads: Iterable[Load], alone: Results, beside: Results) -> None:
    """Print what those who polled got."""
    print(
        "\nPolling alone, and beside the stream\n\n"
        "| load | requests/s | p50 ms | p99 ms | us of the gateway's core each "
        "| beside: requests/s | p50 ms | p99 ms | KB an answer | not modified "
        "| other than 200, 304 |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    )
    # What a window costs without anybody who asks.
    window_s = median(alone[NOBODY].gateway_s)
    for load in loads:
        lonely = alone[load.name]
        asked_s = sum(lonely.gateway_s) - window_s * len(lonely.gateway_s)
        cells = _cells(lonely.answers)
        cells.append(f"{asked_s / len(lonely.answers.times_ms) * 1e6:,.0f}")
        cells += _cells(beside[load.name].answers)
        got = beside[load.name].answers
        count = got.statuses.total()
        failed = count - got.statuses[200] - got.statuses[304] + got.lost
        cells += [f"{got.bytes / count / 1e3:.1f}", f"{got.statuses[304] / count:.0%}"]
        print(f"| {load.name} | {' | '.join(cells)} | {failed} |")


def _cells(got: Answers) -> list[str]:
    if not got.times_ms:
        raise SystemExit(f"nothing was answered; {got.lost} connections lost")
    return [
        f"{len(got.times_ms) / got.wall_s:,.0f}",
        f"{percentile(got.times_ms, 0.5):.1f}",
        f"{percentile(got.times_ms, 0.99):.1f}",
    ]


def report_stream(beside: Results, clients: int) -> None:
    """Print what polling did to those who were pushed to."""
    quiet = beside[NOBODY]
    print(
        f"\nms from the publish until {clients:,} clients had the window, by who polls "
        "meanwhile; p99 of a window: the median of windows\n\n"
        "| polling | p50 | p99 | p99 of a window | against nobody "
        "| gateway's core, ms a window |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: |"
    )
    for name, measured in beside.items():
        times_ms = measured.all_ms()
        rise = measured.p99_ms() / quiet.p99_ms() - 1
        print(
            f"| {name} | {percentile(times_ms, 0.5):.0f} "
            f"| {percentile(times_ms, 0.99):.0f} | {measured.p99_ms():.0f} "
            f"| {rise:+.1%} | {median(measured.gateway_s) * 1e3:.0f} |"
        )
    rise = beside["audience"].p99_ms() / quiet.p99_ms() - 1
    verdict = "kept" if rise <= MOST_RISE else "not kept"
    if len(beside["audience"].windows) < ENOUGH_WINDOWS:
        verdict = "too few windows to tell"
    print(
        f"\nThe p99 must not rise by more than {MOST_RISE:.0%} with an audience that "
        f"polls: {verdict} ({rise:+.1%})."
    )


if __name__ == "__main__":
    main()
