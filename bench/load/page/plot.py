"""One plot: what it shows, thinned for the script, and the same in words. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from bench.load import words
from bench.load.page.markup import Markup, element, panel, prose
from bench.load.page.measured import measured
from bench.load.page.thinning import step, thin, thin_axis
from bench.load.results import Outcome, Points

Unit = Literal["ms", "count", "bytes", "cores"]
WORDS: dict[Unit, Callable[[float | None], str]] = {
    "ms": words.duration,
    "count": words.rate,
    "bytes": lambda amount: f"{words.size(amount)}/s",
    "cores": lambda share: words.NONE if share is None else f"{share:.2f} cores",
}

EXTREMES: dict[str, Callable[[list[float]], float]] = {"greatest": max, "least": min}


@dataclass(frozen=True, slots=True)
class Line:
    """One series of a plot."""

    name: str
    points: Points
    colour: str
    """A token of the style sheet."""
    dash: Sequence[int] = ()
    is_filled: bool = False
    keeps: Literal["greatest", "least"] = "greatest"
    """Which point stands for several where there are too many."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A threshold, as a line across a plot."""

    value: float
    text: str


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot: an axis in milliseconds since 1970, and lines along it."""

    name: str
    title: str
    about: str
    unit: Unit
    at_ms: Sequence[float]
    lines: Sequence[Line]
    limits: Sequence[Limit] = ()
    per: str = "seconds"
    """What a point stands for."""
    size: Literal["whole", "half", "third"] = "half"


def data(plot: Plot, outcome: Outcome) -> dict[str, Any]:
    """Return what the script draws: seconds since the measured time began."""
    by = step(len(plot.at_ms))
    axis = [round((at - outcome.from_ms) / 1_000, 3) for at in plot.at_ms]
    return {
        "name": plot.name,
        "unit": plot.unit,
        "at": thin_axis(axis, by),
        "until": (outcome.to_ms - outcome.from_ms) / 1_000,
        "limits": [asdict(limit) for limit in plot.limits],
        "lines": [
            {
                "name": line.name,
                "colour": line.colour,
                "dash": list(line.dash),
                "fill": line.is_filled,
                "points": [
                    None if point is None else round(point, 3)
                    for point in thin(line.points, by, EXTREMES[line.keeps])
                ],
            }
            for line in plot.lines
        ],
    }


def draw(plot: Plot, outcome: Outcome) -> Markup:
    """Return the plot's place on the page, with all of it in words."""
    says = [in_words(plot, line, outcome) for line in plot.lines]
    by = step(len(plot.at_ms))
    kept = plot.lines[0].keeps
    thinned = f"Each point is the {kept} of {by} {plot.per}." if by > 1 else ""
    return panel(
        f"chart {plot.size}",
        plot.title,
        f"{plot.about} {thinned}".strip(),
        element(
            "div",
            class_="plot",
            data_plot=plot.name,
            role="img",
            aria_label=f"{plot.title}. {' '.join(says)}",
        ),
        element(
            "ul",
            *(
                element("li", _swatch(line), element("b", line.name), Markup(" "),
                        element("span", prose(text.removeprefix(f"{line.name}: "))))
                for line, text in zip(plot.lines, says, strict=True)
            ),
            class_="legend",
        ),
    )  # fmt: skip


def in_words(plot: Plot, line: Line, outcome: Outcome) -> str:
    """Return a line's middle and its extreme, and when that was."""
    known = measured(outcome, plot.at_ms, line.points)
    if not known:
        return f"{line.name}: not measured."
    word = WORDS[plot.unit]
    middle = sorted(point for _, point in known)[(len(known) - 1) // 2]
    extreme = EXTREMES[line.keeps]([point for _, point in known])
    at = next(at for at, point in known if point == extreme)
    end = "at most" if line.keeps == "greatest" else "at least"
    return (
        f"{line.name}: {word(middle)} in the middle, {end} {word(extreme)} "
        f"({elapsed(at - outcome.from_ms)})."
    )


def elapsed(ms: float) -> str:
    """Return a moment of the run: ``5:02`` after the measured time began."""
    sign, seconds = ("-", -ms) if ms < 0 else ("", ms)
    minutes, rest = divmod(int(seconds // 1_000), 60)
    hours, minutes = divmod(minutes, 60)
    whole = f"{hours}:{minutes:02d}" if hours else f"{minutes}"
    return f"{sign}{whole}:{rest:02d}"


def _swatch(line: Line) -> Markup:
    dash = " ".join(map(str, line.dash)) or "none"
    return Markup(
        '<svg viewBox="0 0 22 8" aria-hidden="true"><path d="M0 4h22" stroke-width="3" '
        f'stroke="var(--{line.colour})" stroke-dasharray="{dash}"/></svg>'
    )
