"""Whether an audience that polls delays those who are pushed to, and what it costs.

One gateway process on one core; on the other core the clients of the stream and, with
the lowest priority, those that poll: the load test's, all of them. Every window has
all issues, so every window makes every entity tag worthless.

The audience asks at times that never move, whether or not it is answered: 500 pages
that poll their issue every 10 s and 20 programs that poll the whole board every 2 s.
Nobody asks for some windows, then the audience, and so on in turn, so that the
machine's moods fall on both.
"""

import argparse
from statistics import median

import psutil
from machine import end_on_signals, percentile
from pinned_gateway import ISSUES, WINDOW_S, Stretch, pin, started

from deploy.loadtest.client_mix import Audience, Member
from deploy.loadtest.clients.crowd import Target, crowd
from deploy.loadtest.judge.tallies import ClientTally
from deploy.loadtest.system.machine import describe_machine
from gateway.protocol.key_sets import ALL

IN_TURN = 5
"""So many windows are published before it is the other one's turn."""

MOST_RISE = 0.1
ENOUGH_WINDOWS = 16


def main() -> None:
    """Measure the stream with and without an audience that polls."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=5_000, help="of the stream")
    parser.add_argument("--rounds", type=int, default=6, help="turns of each")
    parser.add_argument("--pages", type=int, default=500, help="of the audience")
    parser.add_argument("--programs", type=int, default=20, help="of the audience")
    arguments = parser.parse_args()
    end_on_signals()
    members = create_audience(arguments.pages, arguments.programs)
    turns = {"nobody": Stretch(), "audience": Stretch()}
    asked = ClientTally()
    with (
        started() as bench,
        crowd([Target("127.0.0.1", bench.port)], processes=1) as audience,
    ):
        pin(1, audience.pids[0])
        psutil.Process(audience.pids[0]).nice(19)
        bench.connect(Audience(arguments.clients))
        bench.publish(ISSUES, 2)
        for _ in range(arguments.rounds):
            bench.add_windows(turns["nobody"], ISSUES, IN_TURN)
            audience.join(members, within_s=WINDOW_S)
            audience.wait_joined(4 * WINDOW_S)
            audience.ticks()
            bench.add_windows(turns["audience"], ISSUES, IN_TURN)
            asked.add(audience.ticks().seen)
            audience.leave()
        ends_ms = [end_ms for each in turns.values() for end_ms in each.ends_ms]
        times_ms = dict(zip(ends_ms, bench.judge(ends_ms), strict=True))
    print(f"Machine: {describe_machine()}")
    report(turns, asked, times_ms, arguments.clients)


def create_audience(pages: int, programs: int) -> list[Member]:
    """Return an ordinary audience."""
    watched = ISSUES[:: len(ISSUES) // 100]
    each = [(watched[number % len(watched)], 10.0) for number in range(pages)]
    each += [(ALL, 2.0)] * programs
    return [
        Member(number, "polling", (key,), every_s)
        for number, (key, every_s) in enumerate(each)
    ]


def report(
    turns: dict[str, Stretch],
    asked: ClientTally,
    times_ms: dict[int, list[float]],
    clients: int,
) -> None:
    """Print what polling cost, and what it did to those who were pushed to."""
    print(
        f"\nms from the publish until {clients:,} clients had the window, by who polls "
        "meanwhile; p99 of a window: the median of windows\n\n"
        "| polling | p50 | p99 | p99 of a window | against nobody "
        "| gateway's core, ms a window |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: |"
    )
    p99_ms, core_s = {}, {}
    for name, turn in turns.items():
        windows = [times_ms[end_ms] for end_ms in turn.ends_ms]
        together = [value for window in windows for value in window]
        p99_ms[name] = median(percentile(window, 0.99) for window in windows)
        core_s[name] = median(turn.gateway_s)
        print(
            f"| {name} | {percentile(together, 0.5):.0f} "
            f"| {percentile(together, 0.99):.0f} | {p99_ms[name]:.0f} "
            f"| {p99_ms[name] / p99_ms['nobody'] - 1:+.1%} | {core_s[name] * 1e3:.0f} |"
        )
    turn = turns["audience"]
    seconds = len(turn.ends_ms) * WINDOW_S
    extra_s = (core_s["audience"] - core_s["nobody"]) * len(turn.ends_ms)
    print(
        f"\nThe audience: {asked.requests / seconds:.0f} requests/s, "
        f"{asked.bytes / max(asked.frames, 1) / 1e3:.1f} KB an answer, "
        f"{extra_s / max(asked.requests, 1) * 1e6:,.0f} us of the gateway's core "
        f"each; {asked.refused} refused."
    )
    rise = p99_ms["audience"] / p99_ms["nobody"] - 1
    verdict = "kept" if rise <= MOST_RISE else "not kept"
    if len(turn.ends_ms) < ENOUGH_WINDOWS:
        verdict = "too few windows to tell"
    print(
        f"\nThe p99 must not rise by more than {MOST_RISE:.0%} with an audience that "
        f"polls: {verdict} ({rise:+.1%})."
    )


if __name__ == "__main__":
    main()
