"""What a judge found, and how it is told: text, JSON, a table. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

State: TypeAlias = Literal["passed", "failed", "not tried"]


@dataclass(frozen=True)
class Trial:
    """One trial of a client or server: the clauses it is about, and what came of it.

    ``breaches`` has a sentence for each breach, with the clause that it breaks;
    ``left_out`` says why it was not tried, empty if it was.
    """

    title: str
    clauses: tuple[str, ...]
    breaches: tuple[tuple[str, str], ...] = ()
    left_out: str = ""

    @property
    def state(self) -> State:
        if self.left_out:
            return "not tried"
        return "failed" if self.breaches else "passed"


@dataclass(frozen=True)
class Report:
    """All trials of one client or server, and the clauses that bind it."""

    subject: str
    clauses: Sequence[str]
    trials: Sequence[Trial] = field(default_factory=tuple)

    def states(self) -> dict[str, State]:
        states: dict[str, State] = dict.fromkeys(self.clauses, "not tried")
        for trial in self.trials:
            if trial.state != "not tried":
                for clause in trial.clauses:
                    if states.get(clause) == "not tried":
                        states[clause] = "passed"
            for clause, _ in trial.breaches:
                states[clause] = "failed"
        return states

    def count(self, state: State) -> int:
        return list(self.states().values()).count(state)

    @property
    def is_clean(self) -> bool:
        return not any(trial.breaches for trial in self.trials)

    def to_json(self) -> dict[str, Any]:
        trials = [{**asdict(trial), "state": trial.state} for trial in self.trials]
        return {"subject": self.subject, "clauses": self.states(), "trials": trials}

    def to_text(self) -> str:
        """Return it for people: what failed, what was left out, the sums."""
        lines = []
        for trial in self.trials:
            for clause, text in trial.breaches:
                lines.append(f"FAILED {clause}: {trial.title}: {text}")
            if trial.left_out:
                lines.append(f"not tried: {trial.title}: {trial.left_out}")
        states = self.states()
        untried = [clause for clause, state in states.items() if state == "not tried"]
        if untried:
            lines.append(f"clauses not tried: {', '.join(untried)}")
        lines.append(
            f"{self.subject}: {len(self.trials)} trials, "
            f"{len([t for t in self.trials if t.state == 'failed'])} failed; "
            f"{len(states)} clauses: {self.count('passed')} passed, "
            f"{self.count('failed')} failed, {self.count('not tried')} not tried"
        )
        return "\n".join(lines)


SIGNS: Mapping[State, str] = {"passed": "yes", "failed": "**no**", "not tried": "-"}


def markdown_table(reports: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of reports in JSON: a line for each clause that any tried.

    A last line names the clauses that none tried.
    """
    subjects = [str(report["subject"]) for report in reports]
    rows: dict[str, list[State]] = {}
    for at, report in enumerate(reports):
        for clause, state in report["clauses"].items():
            rows.setdefault(clause, ["not tried"] * len(reports))[at] = state
    lines = [_row("clause", subjects), _row("---", ["---"] * len(reports))]
    untried = []
    for clause, states in rows.items():
        if set(states) == {"not tried"}:
            untried.append(clause)
        else:
            lines.append(_row(clause, [SIGNS[state] for state in states]))
    counts = [_counts(report) for report in reports]
    lines.append(_row("passed, failed, not tried", counts))
    tail = f"\nNo trial for: {', '.join(untried)}.\n" if untried else ""
    return "\n".join(lines) + "\n" + tail


def _counts(report: Mapping[str, Any]) -> str:
    states = list(report["clauses"].values())
    return ", ".join(str(states.count(s)) for s in ("passed", "failed", "not tried"))


def _row(head: str, cells: Iterable[str]) -> str:
    return f"| {' | '.join([head, *cells])} |"
