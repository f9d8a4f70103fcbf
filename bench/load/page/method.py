"""How it was measured: what a reader needs to know to believe the figures. Pure."""

from datetime import UTC, datetime

from bench.load import words
from bench.load.page.markup import Markup, element, panel, prose
from bench.load.results import Outcome, Result


def method(result: Result) -> Markup:
    """Return the section on the method, with the facts of this run."""
    outcome = result.outcome
    paragraphs = [
        ("Trades come in by a schedule.", _schedule(outcome)),
        (
            "Nothing that was slow is left out.",
            "A test that waits for an answer before it asks again measures least while "
            "the system is slowest (coordinated omission). Here nobody waits: every "
            "window with news for a client is due to it, and counts from the window's "
            "own end until it came, also if it came merged with others, late, or only "
            "after a reconnect. One that never came counts up to the end of the run. A "
            "poll counts from the moment it was due, not from when it could be sent.",
        ),
        (
            "Lag begins when a window ends.",
            f"A window lasts {words.duration(result.window_ms)}, and its trades are "
            "published after its end. Lag is the time from that end until a client had "
            "the frame in hand; publishing is a part of it. How long a trade waited "
            "within its window is in the staleness.",
        ),
        (
            "Staleness is what a viewer sees.",
            "At random moments, for a random key of a random client: for how long a "
            "trade newer than the one shown had been in the log; zero while there was "
            "none. Even a perfect system has up to one window of it.",
        ),
        (
            "Every client is a checker.",
            "No value may go back, no window may be missing from a key's count of "
            "trades, no key may come twice in a frame, and the last price of every "
            "issue must be the reference's. One fault fails the run.",
        ),
        (
            "Percentiles are values that occurred.",
            "By nearest rank over all samples of all prompt clients, never an average "
            "of averages. Where a plot has more points than room, the greatest of each "
            "stretch is drawn (of connected clients the fewest): no peak is lost, and "
            "the middle looks worse than it was.",
        ),
        ("The load test itself needs CPU.", _own_share(outcome)),
    ]
    return panel(
        "method",
        "How this was measured",
        "",
        element(
            "div",
            *(
                element("p", element("b", title), Markup(" "), prose(text))
                for title, text in paragraphs
            ),
            class_="prose",
        ),
        element(
            "dl",
            *(
                element("div", element("dt", name), element("dd", value, class_=kind))
                for name, value, kind in _facts(result)
            ),
            class_="facts",
        ),
    )


def _schedule(outcome: Outcome) -> str:
    feed = outcome.feeding
    behind = feed.behind_ms
    text = (
        f"The feed ({feed.words}) is an open loop: each trade has a due time, set "
        "before the run, and the schedule never waits for the system. A trade that "
        "could not be appended in time is appended as soon as possible, and its delay "
        f"is part of the report. {words.count(feed.due)} trades fell due, "
        f"{words.count(feed.acknowledged)} were acknowledged by the log"
    )
    if behind.count:
        text += (
            f", half of the appends within {words.duration(behind.p50)} of their due "
            f"time, 99 of 100 within {words.duration(behind.p99)}, all within "
            f"{words.duration(behind.max)}"
        )
    others = [
        f"{words.count(count)} {what}"
        for what, count in (
            ("appends tried again", feed.retried),
            ("refused before the log", sum(feed.refused.values())),
            ("dropped at the log's cap", feed.dropped_at_cap),
        )
        if count
    ]
    return f"{text}. {', '.join(others).capitalize()}." if others else f"{text}."


def _own_share(outcome: Outcome) -> str:
    ours = [
        sum(known) / len(known)
        for one in outcome.processes
        if one.is_ours and (known := [cpu for cpu in one.cpu if cpu is not None])
    ]
    if not ours:
        return "How much is not known: its processes were not measured."
    return (
        f"Its processes, marked as such in the table, used {words.cores(sum(ours))} of "
        "one core on average. Where they share the machine with what is tested, the "
        "machine was that much smaller than it looks."
    )


def _facts(result: Result) -> list[tuple[str, str, str | None]]:
    outcome = result.outcome
    measured = words.duration(outcome.to_ms - outcome.from_ms)
    return [
        ("Command", result.command, "code"),
        ("Machine and versions", result.machine, None),
        ("Began", moment(result.began_ms), None),
        ("Measured", f"{measured} from {moment(outcome.from_ms)}", None),
        ("Ended", moment(result.ended_ms), None),
        ("Window", words.duration(result.window_ms), None),
        ("Fed", outcome.feeding.words, None),
        ("Format of the data", f"version {result.version}", None),
    ]


def moment(ms: float) -> str:
    """Return a point in time, UTC."""
    return f"{datetime.fromtimestamp(ms / 1_000, UTC):%Y-%m-%d %H:%M:%S} UTC"
