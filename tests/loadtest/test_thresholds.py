"""Thresholds: what they may say, and when they are broken."""

from dataclasses import replace

import pytest

from loadtest.results import Audit, Check, Outcome, Summary
from loadtest.thresholds import check, measure, parse
from tests.loadtest.samples import make_broken_result, make_outcome

OUTCOME = make_outcome(seconds=40, clients=20)


def with_lag(outcome: Outcome, p99: float) -> Outcome:
    return replace(outcome, lag_ms=replace(outcome.lag_ms, p99=p99))


RULES = [
    ("lag.p99>250ms", "lag.p99", ">", 250),
    (" lag.market.p999 >= 1.5 s ", "lag.market.p999", ">=", 1_500),
    ("staleness.slow.mean<1s", "staleness.slow.mean", "<", 1_000),
    ("feed.behind.max>1s", "feed.behind.max", ">", 1_000),
    ("clients.lost>0", "clients.lost", ">", 0),
    ("cpu.throttle JVM.max>90%", "cpu.throttle JVM.max", ">", 0.9),
    ("cpu.crowd 1.mean>0.5", "cpu.crowd 1.mean", ">", 0.5),
    ("memory.gateway.max>1GiB", "memory.gateway.max", ">", 1_024),
    ("machine.cpu.mean>=150%", "machine.cpu.mean", ">=", 1.5),
    ("merged.windows<=10", "merged.windows", "<=", 10),
]


def test_a_rule_is_metric_operator_and_limit() -> None:
    """Limits come in the unit of their quantity; spaces do not matter."""
    for text, metric, sign, limit in RULES:
        rule = parse(text)
        assert (rule.text, rule.metric, rule.sign) == (text.strip(), metric, sign)
        assert rule.limit == pytest.approx(limit)


COMPLAINTS = [
    ("lag.p99", "should be metric, one of > >= < <=, and a limit"),
    ("lag.p99=3ms", "should be metric, one of > >= < <=, and a limit"),
    ("lag.p95>3ms", "no metric 'lag.p95' (docs/scaling.md)"),
    ("lag.nobody.p99>3ms", "no metric 'lag.nobody.p99'"),
    ("publish.watch.p99>3ms", "no metric 'publish.watch.p99'"),
    ("cpu..max>3%", "no metric 'cpu..max'"),
    ("cpu.gateway.p99>3%", "no metric 'cpu.gateway.p99'"),
    ("machine.memory.max>3", "no metric 'machine.memory.max'"),
    ("memory.gateway.mean>3MiB", "no metric 'memory.gateway.mean'"),
    ("lag.p99>250", "lag.p99 is time and needs a number in ms or in s"),
    ("lag.p99>-1ms", "should be metric, one of > >= < <=, and a limit"),
    ("lag.p99>nanms", "should be metric, one of > >= < <=, and a limit"),
    ("faults>1%", "faults is count and needs a number alone"),
    ("memory.gateway.max>3MB", "is memory and needs a number in MiB or in GiB"),
    ("memory.gateway.growth>3MiB", "is growth and needs a number in %"),
    ("memory.gateway.climb>3%", "is climb and needs a number in MiB"),
    ("cpu.gateway.max>3ms", "is CPU and needs a number alone or in %"),
]


def test_a_rule_that_says_nothing_is_refused_in_one_sentence() -> None:
    """The sentence names the rule, the part of it and what is allowed."""
    for text, complaint in COMPLAINTS:
        with pytest.raises(ValueError, match=r"^threshold ") as raised:
            parse(text)
        assert repr(text) in str(raised.value)
        assert complaint in str(raised.value)
        assert "\n" not in str(raised.value)


def test_a_rule_is_broken_when_it_holds() -> None:
    """All four operators, at the limit and beside it."""
    outcome = with_lag(OUTCOME, 312)
    for rule, is_broken in (
        ("lag.p99>250ms", True),
        ("lag.p99>312ms", False),
        ("lag.p99>=312ms", True),
        ("lag.p99<312ms", False),
        ("lag.p99<=312ms", True),
        ("lag.p99>1s", False),
    ):
        assert parse(rule).check(outcome) == Check(rule, 312, "312 ms", is_broken)


def test_what_was_found_never_looks_like_a_limit_it_is_not() -> None:
    """Where rounding would hide why a rule broke, the words are exact."""
    found = parse("lag.p99>250ms").check(with_lag(OUTCOME, 250.2))
    assert (found.text, found.is_broken) == ("250.200", True)


def test_a_metric_of_which_nothing_was_measured_breaks_its_rule() -> None:
    """What nobody saw has not held, whichever way the rule looks."""
    bare = replace(OUTCOME, lag_ms=Summary(0), kinds=(), processes=())
    for text in ("lag.p99>1s", "lag.p99<1s", "cpu.gateway.max>1", "clients.lost>0"):
        found = parse(text).check(bare)
        assert (found.found, found.text) == (None, "nothing measured")
        assert found.is_broken


def test_every_run_is_checked_for_what_is_promised() -> None:
    """Without any rule: faults, unseen windows, the ledger and the audit."""
    rules = [one.rule for one in check([], OUTCOME)]
    assert rules == [
        "faults>0",
        "clients.unseen>0",
        "ledger.problems>0",
        "audit.differences>0",
    ]
    assert not any(one.is_broken for one in check([], OUTCOME))
    assert all(one.is_broken for one in check([], make_broken_result().outcome))


def test_what_was_not_asked_for_is_not_promised() -> None:
    """Without an audit or clients there is nothing to hold them to."""
    alone = replace(OUTCOME, audit=None, kinds=())
    assert [one.rule for one in check([], alone)] == ["faults>0", "ledger.problems>0"]
    asked = check([parse("audit.differences>0")], alone)
    assert asked[-1].is_broken


def test_a_rule_given_twice_is_checked_once() -> None:
    """Standing rules come first, then the given ones in their order."""
    given = [parse("lag.p99>1s"), parse("faults>0"), parse("lag.p99>1s")]
    rules = [one.rule for one in check(given, OUTCOME)]
    assert rules.count("faults>0") == rules.count("lag.p99>1s") == 1
    assert rules[-1] == "lag.p99>1s"


def test_counts_are_of_the_clients_they_speak_of() -> None:
    """Stalled clients are there to be closed; unseen windows are of prompt kinds."""
    kinds = {kind.kind: kind for kind in OUTCOME.kinds}
    assert sum(kinds["stalled"].closes.values()) > 0
    assert kinds["stalled"].unseen > 0
    assert kinds["slow"].merged_windows > 0
    assert measure("clients.lost", OUTCOME) == 0
    assert measure("clients.unseen", OUTCOME) == 0
    assert measure("merged.windows", OUTCOME) == 0
    watch = replace(kinds["watch"], closes={"1012": 2, "lost": 1}, refused=5, unseen=7)
    changed = replace(OUTCOME, kinds=[watch, kinds["stalled"]])
    assert measure("clients.lost", changed) == 3
    assert measure("clients.refused", changed) == 5
    assert measure("clients.unseen", changed) == 7


def test_faults_and_differences_count_what_has_no_words() -> None:
    """Lists in words hold the first few only; the counts are the truth."""
    audit = Audit(9, 1, 1, ["one"], difference_count=400)
    assert measure("audit.differences", replace(OUTCOME, audit=audit)) == 400
    assert measure("faults", replace(OUTCOME, faults=["a new epoch"])) == 1
    assert measure("faults", make_broken_result().outcome) == 2


def test_a_process_is_found_by_its_name_as_one_types_it() -> None:
    """Case and spaces do not matter; of several with a name the worst counts."""
    jvm = next(one for one in OUTCOME.processes if one.name == "throttle JVM")
    again = replace(jvm, pid=1, cpu=[None, 1.9, 1.7], memory_mib=[None])
    outcome = replace(OUTCOME, processes=[*OUTCOME.processes, again])
    assert measure("cpu.throttle-jvm.max", outcome) == 1.9
    assert measure("cpu.throttle JVM.mean", outcome) == pytest.approx(1.8)
    known = [mib for mib in jvm.memory_mib if mib is not None]
    assert measure("memory.Throttle-JVM.max", outcome) == max(known)
    assert measure("machine.cpu.max", outcome) == max(
        cpu for cpu in outcome.seconds.machine_cpu if cpu is not None
    )


def test_growth_is_the_last_third_against_the_second() -> None:
    """A process that has settled does not grow, whatever its start took."""
    jvm = next(one for one in OUTCOME.processes if one.name == "throttle JVM")
    grown = replace(jvm, memory_mib=[1, None, 2, 100, 100, 120, 140])
    outcome = replace(OUTCOME, processes=[grown])
    assert measure("memory.throttle-jvm.growth", outcome) == pytest.approx(0.3)
    bare = replace(outcome, processes=[replace(jvm, memory_mib=[1, None])])
    assert measure("memory.throttle-jvm.growth", bare) is None


def test_climb_is_what_memory_rises_by_after_two_fifths_but_for_swings() -> None:
    """Nothing is said of the start, nor of a few MiB, nor of what goes down again."""
    jvm = next(one for one in OUTCOME.processes if one.name == "throttle JVM")

    def climb(*mib: float | None) -> float | None:
        grown = replace(jvm, memory_mib=mib)
        return measure("memory.throttle-jvm.climb", replace(OUTCOME, processes=[grown]))

    minute = [second / 60 for second in range(60)]
    start = [10.0] * 480
    rising = [100 + m + n for m in range(12) for n in minute]
    assert climb(*start, *rising) == pytest.approx(1)
    assert climb(*start, *(100 + mib / 4 for mib in rising)) == 0
    swinging = [150 + 60 * (second % 240 < 60) for second in range(720)]
    assert climb(*start, *swinging) == 0
    assert climb(1, None) is None


def test_every_distribution_has_its_figures() -> None:
    """Each of them is measured, and grows with its percentile."""
    for head in ("lag", "publish", "fanout", "staleness"):
        names = (f"{head}.{figure}" for figure in ("p50", "p90", "p99", "max"))
        figures = [measure(name, OUTCOME) for name in names]
        assert None not in figures
        assert figures == sorted(figures, key=float)  # type: ignore[arg-type]
    assert measure("lag.polling.p50", OUTCOME) != measure("lag.watch.p50", OUTCOME)
    assert measure("staleness.polling.max", OUTCOME) is not None
    assert measure("feed.behind.max", OUTCOME) is not None
