"""A search for the load at which a threshold breaks, step by step. Pure."""

from bench.load import words
from bench.load.page.markup import Markup, element, join, level, meter, panel, table
from bench.load.results import Capacity, Step
from bench.load.verdict import LOADS

NUMBER = "number"


def capacity(found: Capacity | None) -> Markup:
    """Return every step of a search, in the order of its tries."""
    if found is None:
        return Markup("")
    most = max((step.load for step in found.steps), default=1.0) or 1.0
    rows = [
        [
            join([element("b", words.count(step.load)), _meter(step, most)]),
            level(step.is_good, "held" if step.is_good else "broke"),
            words.duration(step.lag_p50_ms),
            words.duration(step.lag_p99_ms),
            words.duration(step.publish_p99_ms),
            words.duration(step.fanout_p99_ms),
            words.duration(step.behind_ms),
            words.cores(step.machine_cpu),
            "; ".join(step.broken) or words.NONE,
            ", ".join(step.busiest),
        ]
        for step in found.steps
    ]
    what = LOADS[found.raised].capitalize()
    heads = [
        "Lag p50",
        "Lag p99",
        "Publish p99",
        "Fan-out p99",
        "Feed behind",
        "Machine",
    ]
    return panel(
        "capacity",
        "Where it gives way",
        f"{what} were raised until a threshold broke, then narrowed down; steps in the "
        "order of their tries. The plot is lag p99 by load; CPU is of one core.",
        element("div", class_="plot", data_plot="capacity", role="img",
                aria_label="Lag p99 by load; the table has the same."),
        table(
            "Steps",
            [(what, ""), ("", ""), *((head, NUMBER) for head in heads),
             ("What broke", ""), ("Busiest, share of a core", "")],
            rows,
        ),
        element("p", element("b", "What gave way first: "), found.gave_way or "nothing",
                ".", class_="says"),
    )  # fmt: skip


def _meter(step: Step, most: float) -> Markup:
    return meter(step.load, most, "good" if step.is_good else "bad")
