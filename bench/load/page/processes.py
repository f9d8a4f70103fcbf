"""CPU and memory of every process, drawn small, one line each. Pure."""

from collections.abc import Iterator, Sequence

from bench.load import words
from bench.load.page.markup import Markup, element, join, panel, table
from bench.load.page.thinning import step, thin
from bench.load.results import Outcome, Points, ProcessUsage

WIDTH, HEIGHT = 220, 30


def processes(outcome: Outcome) -> Markup:
    """Return the table of processes, what is tested before what tests."""
    if not outcome.processes:
        return panel(
            "processes",
            "Processes",
            "None was measured: what was tested ran elsewhere.",
        )
    ordered = sorted(outcome.processes, key=lambda one: one.is_ours)
    most = max((most_of(one.cpu) or 0.0 for one in ordered), default=0.0)
    return panel(
        "processes",
        "Processes",
        "CPU is a share of one core, drawn on one scale for all, from 0 to "
        f"{words.cores(most)}. Memory is drawn from 0 to the most of its process.",
        table(
            "Processes",
            [
                ("Process", ""),
                ("CPU mean", "number"),
                ("most", "number"),
                ("over the run", "spark"),
                ("Memory at first", "number"),
                ("most", "number"),
                ("over the run", "spark"),
            ],
            [_row(one, most) for one in ordered],
        ),
    )


def _row(one: ProcessUsage, most_cpu: float) -> list[str]:
    memory = [mib for mib in one.memory_mib if mib is not None]
    cpu = [share for share in one.cpu if share is not None]
    side = "load test" if one.is_ours else "tested"
    return [
        join([element("b", one.name), element("span", side, class_="soft what")]),
        words.cores(sum(cpu) / len(cpu) if cpu else None),
        words.cores(most_of(one.cpu)),
        sparkline(one.cpu, most_cpu, "amber" if one.is_ours else "accent"),
        _mib(memory[0] if memory else None),
        _mib(most_of(one.memory_mib)),
        sparkline(one.memory_mib, most_of(one.memory_mib) or 0.0, "line-strong"),
    ]


def _mib(mib: float | None) -> str:
    return words.size(None if mib is None else mib * 2**20)


def most_of(points: Points) -> float | None:
    """Return the greatest measured point."""
    return max((point for point in points if point is not None), default=None)


def sparkline(points: Points, most: float, colour: str) -> Markup:
    """Return a line from zero to ``most``, gaps where a process was not there.

    One unmeasured point between two is no gap: memory is measured less often.
    """
    by = step(len(points), most=WIDTH)
    thinned = thin(points, by)
    paths = [
        _path(run, len(thinned), most)
        for run in _runs(thinned, allowed=max(1, 10 // by))
    ]
    lines = "".join(f'<path d="{path}"/>' for path in paths)
    return Markup(
        f'<svg class="spark" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" '
        f'style="stroke: var(--{colour})" aria-hidden="true">{lines}</svg>'
    )


def _runs(points: Points, allowed: int) -> Iterator[Sequence[tuple[int, float]]]:
    """Yield stretches of measured points that lie at most ``allowed`` + 1 apart."""
    run: list[tuple[int, float]] = []
    for number, point in enumerate(points):
        if point is None:
            continue
        if run and number - run[-1][0] > allowed + 1:
            yield run
            run = []
        run.append((number, point))
    if run:
        yield run


def _path(run: Sequence[tuple[int, float]], count: int, most: float) -> str:
    across = WIDTH / max(1, count - 1)
    # The line is two wide: half of it would be cut off at the edge.
    spots = [
        f"{number * across:.1f} {HEIGHT - 1 - (HEIGHT - 2) * point / (most or 1.0):.1f}"
        for number, point in run
    ]
    return "M" + " L".join(spots if len(spots) > 1 else spots * 2)
