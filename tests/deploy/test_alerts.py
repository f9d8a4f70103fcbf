"""The alerts by Prometheus' own tool: what pages whom, and that a quiet night does not.

A scenario is a set of series that stand for a deployment, each a function of the time.
Faults change some of them from a moment on. All is tried with scrapes of 1 s and 15 s.
"""

import shutil
import subprocess
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import yaml

from gateway.health.readiness import REASONS
from ingest.market_hours.hours import MarketHours
from tests.conftest import skip_or_fail
from tests.paths import ROOT

RULES = ROOT / "deploy" / "prometheus" / "alerts.yml"
FAULT_S = 121
"""When a fault begins: a moment after a scrape."""

G, T, F = "tickthrottle_gateway_", "tickthrottle_throttle_", "tickthrottle_feed_"

TRADED = f"{G}last_trade_timestamp_seconds"
OPEN = f'{G}market_open{{market="XKRX"}}'
ACKNOWLEDGED = f"{F}acknowledged_trades_total"
REFUSED = f'{F}refused_trades_total{{reason="bad_price"}}'

Series = Callable[[int], float | None]
"""The value of a series at a second; None where nothing is scraped."""


def constant(value: float) -> Series:
    """Return a series that stays as it is."""
    return lambda _: value


def gone(_: int) -> None:
    """Stand for a series that is not there."""


def age(seconds: float) -> Series:
    """Return a moment that is always so long ago."""
    return lambda at_s: at_s - seconds


def histogram(name: str, fast: float, slow: float) -> dict[str, Series]:
    """Return buckets; so many observations a second are quick, so many take 2 s."""
    growth = {"0.1": fast, "1.0": fast, "2.0": fast + slow, "+Inf": fast + slow}
    return {
        f'{name}_seconds_bucket{{le="{le}"}}': lambda at_s, each=each: at_s * each
        for le, each in growth.items()
    }


CODES = ("may_evict", "evicted", "transaction_open", "wrong_stamps")

WELL: Mapping[str, Series] = {
    **{f'up{{job="tickthrottle-{job}",instance="{job}-1:9101"}}': constant(1)
       for job in ("gateway", "throttle", "feed", "archive")},
    'tickthrottle_processes{process="gateway"}': constant(1),
    'tickthrottle_processes{process="throttle"}': constant(2),
    **{f'{G}not_ready{{reason="{code}"}}': constant(0) for code in REASONS},
    **{f'{G}finding{{code="{code}"}}': constant(0) for code in CODES},
    f"{G}window_length_seconds": constant(2),
    f"{G}newest_window_timestamp_seconds": age(1),
    TRADED: age(1),
    OPEN: constant(1),
    f"{G}redis_used_memory_bytes": constant(1e9),
    f"{G}redis_max_memory_bytes": constant(4e9),
    f"{G}log_trades": constant(1e6),
    f"{G}clients_slow_closed_total": constant(0),
    **histogram(f"{G}publish_lag", 1, 0),
    **histogram(f"{G}fanout_lag", 1, 0),
    **histogram(f"{G}loop_lag", 10, 0),
    f'{T}lease_held{{instance="throttle-1:9101"}}': constant(1),
    f'{T}lease_held{{instance="throttle-2:9101"}}': constant(0),
    f"{T}ledger_off_by_trades": constant(0),
    f"{T}fenced_total": constant(0),
    f'{T}trades_total{{outcome="refused"}}': constant(0),
    f"{T}window_end_timestamp_seconds": age(1),
    ACKNOWLEDGED: lambda at_s: 900 * at_s,
    REFUSED: constant(0),
    f'{F}dropped_trades_total{{reason="log_cap"}}': constant(0),
    f"{F}schedule_lag_seconds": constant(0.1),
    f"{F}log_cap_trades": constant(4e6),
    f"{F}takes_nothing": constant(0),
    f"{F}drifted_frames_total": constant(0),
    "tickthrottle_archive_window_end_timestamp_seconds": age(60),
    "tickthrottle_archive_destination_away": constant(0),
    'tickthrottle_analytics_clock_timestamp_seconds{product="bars"}': age(5),
    'tickthrottle_analytics_off_by_trades{product="bars"}': constant(0),
}  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """Series that are other ones from ``FAULT_S`` on, and what fires then.

    ``within_s`` after it the alerts that fire are exactly ``alerts``.
    """

    alerts: set[str]
    series: Mapping[str, Series] = field(default_factory=dict)
    within_s: int = 60
    before: Mapping[str, Series] = field(default_factory=dict)


def reason(code: str) -> str:
    """Return the series of a reason."""
    return f'{G}not_ready{{reason="{code}"}}'


def found(code: str) -> str:
    """Return the series of a finding."""
    return f'{G}finding{{code="{code}"}}'


NO_WINDOW = {
    f"{G}newest_window_timestamp_seconds": constant(FAULT_S),
    TRADED: constant(FAULT_S),
    reason("feed_stale"): constant(1),
}
NO_TRADE = {TRADED: constant(FAULT_S)}


def growing(each: float) -> Series:
    """Return a counter that grows from the fault on."""
    return lambda at_s: each * (at_s - FAULT_S)


FAULTS = {
    "Redis is down": Fault(
        {"RedisDown"}, {reason("redis_down"): constant(1), **NO_WINDOW}
    ),
    "no window comes": Fault({"NoWindow"}, NO_WINDOW),
    "the job is dead, and no standby takes over": Fault(
        {"NoWindow", "NoActiveJob"},
        {
            **NO_WINDOW,
            f'{T}lease_held{{instance="throttle-1:9101"}}': constant(0),
        },
    ),
    "job and standby are gone": Fault(
        {"NoWindow", "ThrottleMissing", "ProcessDown"},
        {
            **NO_WINDOW,
            'up{job="tickthrottle-throttle",instance="throttle-1:9101"}': constant(0),
            'tickthrottle_processes{process="throttle"}': gone,
            f'{T}lease_held{{instance="throttle-1:9101"}}': gone,
            f'{T}lease_held{{instance="throttle-2:9101"}}': gone,
        },
    ),
    "the standby is gone": Fault(
        {"StandbyMissing"}, {'tickthrottle_processes{process="throttle"}': constant(1)}
    ),
    "no trade comes": Fault({"FeedQuiet"}, NO_TRADE),
    "no trade comes, and nobody knows the hours": Fault(
        {"FeedQuietAtSomeHour"}, NO_TRADE, 360, {OPEN: gone}
    ),
    "the feed is gone": Fault(
        {"FeedQuiet", "ProcessDown"},
        {**NO_TRADE, 'up{job="tickthrottle-feed",instance="feed-1:9101"}': constant(0)},
    ),
    "a feed refuses all": Fault(
        {"FeedRefuses", "FeedQuiet"},
        {
            **NO_TRADE,
            REFUSED: growing(900),
            ACKNOWLEDGED: constant(900 * FAULT_S),
        },
    ),
    "a feed refuses one trade in five": Fault(
        {"FeedRefuses"}, {REFUSED: growing(225)}
    ),
    "a feed takes nothing": Fault(
        {"FeedTakesNothing"}, {f"{F}takes_nothing": constant(1)}
    ),
    "records have grown": Fault(
        {"RecordsDrift"}, {f"{F}drifted_frames_total": growing(9)}
    ),
    "a feed is late": Fault({"FeedLate"}, {f"{F}schedule_lag_seconds": constant(5)}),
    "the log drops trades": Fault(
        {"TradesDropped"}, {f'{F}dropped_trades_total{{reason="log_cap"}}': growing(9)}
    ),
    "the log is near its cap": Fault(
        {"LogNearCap"}, {f"{G}log_trades": constant(3.3e6)}
    ),
    "Redis' memory is short": Fault(
        {"RedisMemory"}, {f"{G}redis_used_memory_bytes": constant(3.3e9)}
    ),
    "Redis may evict keys": Fault({"RedisEvicts"}, {found("may_evict"): constant(1)}),
    "Redis has evicted keys": Fault({"RedisEvicts"}, {found("evicted"): constant(1)}),
    "a transaction is open": Fault(
        {"TransactionOpen"}, {found("transaction_open"): constant(1)}
    ),
    "a producer stamps wrongly": Fault(
        {"WrongStamps"}, {found("wrong_stamps"): constant(1)}
    ),
    "the ledger is off": Fault(
        {"LedgerOff"}, {f"{T}ledger_off_by_trades": constant(3)}
    ),
    "a job is behind": Fault({"JobBehind"}, {reason("job_behind"): constant(1)}),
    "a job was fenced": Fault({"JobFenced"}, {f"{T}fenced_total": constant(1)}),
    "trades are refused": Fault(
        {"DeadLetters"}, {f'{T}trades_total{{outcome="refused"}}': constant(1)}
    ),
    "one gateway gets no windows": Fault(
        {"GatewayNotReady"}, {reason("feed_stale"): constant(1)}
    ),
    "a gateway is overloaded": Fault(
        {"GatewayOverloaded"}, {reason("overloaded"): constant(1)}
    ),
    "the gateways are gone": Fault(
        {"GatewayMissing", "ProcessDown"},
        {
            'up{job="tickthrottle-gateway",instance="gateway-1:9101"}': constant(0),
            'tickthrottle_processes{process="gateway"}': gone,
            **{name: gone for name in WELL if name.startswith(G)},
        },
    ),
    "the archive's disk is full": Fault(
        {"ArchiveAway"}, {"tickthrottle_archive_destination_away": constant(1)}
    ),
    "the archive stands still": Fault(
        {"ArchiveBehind"},
        {"tickthrottle_archive_window_end_timestamp_seconds": constant(FAULT_S)},
        360,
    ),
    "an analytics query stands still": Fault(
        {"AnalyticsBehind"},
        {
            'tickthrottle_analytics_clock_timestamp_seconds{product="bars"}': constant(
                FAULT_S
            )
        },
        180,
    ),
    "a trade is in no book of an analytics query": Fault(
        {"AnalyticsOff"},
        {'tickthrottle_analytics_off_by_trades{product="bars"}': constant(2)},
    ),
    "windows are published and served late": Fault(
        {"PublishSlow", "FanoutSlow"},
        {
            **{name: series for lag in ("publish_lag", "fanout_lag")
               for name, series in histogram(f"{G}{lag}", 0, 1).items()},
        },
        240,
    ),
    "the event loop is late": Fault({"LoopLag"}, histogram(f"{G}loop_lag", 0, 10), 180),
    "slow clients are closed": Fault(
        {"SlowClients"}, {f"{G}clients_slow_closed_total": growing(1)}, 240
    ),
}  # fmt: skip


def notation(values: Sequence[float | None]) -> str:
    """Write values as promtool reads them, in runs of equal steps."""
    parts, at = [], 0
    while at < len(values):
        begin, value = at, values[at]
        at += 1
        if value is None:
            while at < len(values) and values[at] is None:
                at += 1
            parts.append("stale" + f" _x{at - begin - 1}" * (at - begin > 1))
            continue
        step = 0.0
        if at < len(values) and (after := values[at]) is not None:
            step = after - value
        expected = value + step
        while at < len(values) and values[at] == expected:
            at, expected = at + 1, expected + step
        steps = at - begin - 1
        parts.append(f"{value:.15g}" + f"{step:+.15g}x{steps}" * (steps > 0))
    return " ".join(parts)


def input_series(
    well: Mapping[str, Series], fault: Fault, length_s: int, step_s: int
) -> list[dict[str, str]]:
    """Return the series of a deployment in which a fault happens."""

    before = {**well, **fault.before}
    after = {**before, **fault.series}
    values = {
        name: [
            (before if at_s < FAULT_S else after)[name](at_s)
            for at_s in range(0, length_s, step_s)
        ]
        for name in well
    }
    return [
        {"series": name, "values": notation(of_name)}
        for name, of_name in values.items()
    ]


def make_test(
    name: str, series: list[dict[str, str]], step_s: int, *checks: dict[str, Any]
) -> dict[str, Any]:
    """Return a test as promtool reads it."""
    return {
        "name": name,
        "interval": f"{step_s}s",
        "input_series": series,
        "promql_expr_test": list(checks),
        "external_labels": {"tickthrottle_docs": "https://docs.example"},
    }


def firing(at_s: int, alerts: Iterable[str]) -> dict[str, Any]:
    """Return the check that exactly these alerts fire at a moment."""
    labels = [f'{{alertname="Tickthrottle{alert}"}}' for alert in sorted(alerts)]
    return {
        "expr": 'group by (alertname) (ALERTS{alertstate="firing"})',
        "eval_time": f"{at_s}s",
        "exp_samples": [{"labels": label, "value": 1} for label in labels],
    }


def never(severity: str, until_s: int) -> dict[str, Any]:
    """Return the check that no alert of a severity ever fired."""
    alerts = f'ALERTS{{alertstate="firing",severity=~"{severity}"}}'
    return {
        "expr": f"count by (alertname) (count_over_time({alerts}[{until_s}s]))",
        "eval_time": f"{until_s}s",
        "exp_samples": [],
    }


def promtool(folder: Path, every_s: int, *tests: dict[str, Any]) -> None:
    """Have Prometheus' own tool try the rules, which look so often."""
    if shutil.which("promtool") is None:
        skip_or_fail("promtool is not installed (on Debian: prometheus)")
    content = {
        "rule_files": [str(RULES)],
        "evaluation_interval": f"{every_s}s",
        "tests": list(tests),
    }
    file = folder / "test.yml"
    file.write_text(yaml.safe_dump(content, sort_keys=False, width=2**31))
    done = subprocess.run(
        ["promtool", "test", "rules", str(file)],
        capture_output=True,
        check=False,
        timeout=300,
    )
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == 0, said[:6_000]


@pytest.mark.parametrize("step_s", [1, 15])
def test_a_fault_fires_its_alerts_within_a_minute_and_no_others(
    tmp_path: Path, step_s: int
) -> None:
    """Before it nothing fires; a ticket that measures a while comes later."""
    tests = []
    for name, fault in FAULTS.items():
        until_s = FAULT_S + fault.within_s
        series = input_series(WELL, fault, until_s + 1, step_s)
        quiet = (
            never("page|ticket", FAULT_S - 1) if not fault.before else never("page", 9)
        )
        tests.append(
            make_test(name, series, step_s, quiet, firing(until_s, fault.alerts))
        )
    promtool(tmp_path, 5, *tests)


def test_every_alert_is_tried() -> None:
    """And no scenario names one that does not exist."""
    groups = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    names = {rule["alert"] for group in groups for rule in group["rules"]}
    alerts = set().union(*(fault.alerts for fault in FAULTS.values()))
    assert {f"Tickthrottle{alert}" for alert in alerts} == names


DAY_S, MINUTE_S = 86_400, 60
MONDAY = datetime(2027, 5, 3, tzinfo=ZoneInfo("Asia/Seoul"))
"""The first day of a week whose Wednesday is a holiday."""


class Week:
    """A week by the calendars of some markets, open from ``opens`` to ``closes``.

    Those are seconds since the week began, of the three days before it, too. While a
    market is open, 900 trades are appended a second.
    """

    def __init__(self, hours: str) -> None:
        self.hours = MarketHours.parse(hours)
        minutes = range(-3 * DAY_S, 8 * DAY_S, MINUTE_S)
        is_open = [any(self.are_open(at_s).values()) for at_s in minutes]
        edges = [
            (at_s, after)
            for at_s, before, after in zip(
                minutes[1:], is_open, is_open[1:], strict=False
            )
            if before != after
        ]
        self.opens = [at_s for at_s, is_opening in edges if is_opening]
        self.closes = [at_s for at_s, is_opening in edges if not is_opening]

    def are_open(self, at_s: int) -> dict[str, bool]:
        """Return whether each market trades at a moment."""
        now_ms = round(MONDAY.timestamp() + at_s) * 1_000
        return {state.market: state.is_open for state in self.hours.states(now_ms)}

    def is_open(self, at_s: int) -> bool:
        """Tell whether any of them trades."""
        return bisect_right(self.opens, at_s) > bisect_right(self.closes, at_s)

    def traded_s(self, at_s: int) -> int:
        """Return when a trade came last."""
        if self.is_open(at_s):
            return at_s - 1
        return self.closes[bisect_right(self.closes, at_s) - 1] - 1

    def appended(self, at_s: int) -> int:
        """Return how many trades were appended by a moment."""
        sessions = zip(self.opens, self.closes, strict=True)
        return 900 * sum(max(0, min(at_s, end) - begin) for begin, end in sessions)

    def series(self, start_s: int = 0, **others: Series) -> dict[str, Series]:
        """Return a deployment that goes by the week, from a moment of it on."""

        def of_market(market: str) -> Series:
            return lambda at_s: float(self.are_open(start_s + at_s)[market])

        opens = {
            f'{G}market_open{{market="{market}"}}': of_market(market)
            for market in self.hours.markets
        }
        return {
            **WELL,
            TRADED: lambda at_s: self.traded_s(start_s + at_s) - start_s,
            ACKNOWLEDGED: lambda at_s: self.appended(start_s + at_s),
            **opens,
            **others,
        }


@pytest.fixture(params=["XKRX", "XKRX; NXT"], ids=["to 15:30", "to 20:00"])
def week(request: pytest.FixtureRequest) -> Week:
    """A week of one venue, and one of two: from 08:00 to 20:00, with breaks."""
    return Week(request.param)


def test_a_week_is_that_of_the_calendars() -> None:
    """Five days but one, with the breaks in which no venue trades."""
    assert [len(Week(hours).opens) for hours in ("XKRX", "XKRX; NXT")] == [
        # Of Friday to the Monday after.
        *(1 + 4 + 1, 3 * (1 + 4 + 1)),
    ]


@pytest.mark.slow
def test_a_week_pages_nobody(tmp_path: Path, week: Week) -> None:
    """Sessions, nights, a holiday, a weekend; a feed that is stopped at each close."""
    length_s = 7 * DAY_S
    feed = 'up{job="tickthrottle-feed",instance="feed-1:9101"}'
    told = week.series(**{feed: lambda at_s: float(week.is_open(at_s))})
    series = input_series(told, Fault(set()), length_s, 15)
    test = make_test("a week", series, 15, never("page|ticket", length_s - 15))
    # Rarely, for time; the edges of sessions are looked at closely below.
    promtool(tmp_path, 300, test)


@pytest.mark.parametrize("step_s", [1, 15])
def test_an_opening_a_close_and_a_restart_page_nobody(
    tmp_path: Path, step_s: int, week: Week
) -> None:
    """Looked at every five seconds, where something may be missed in a week."""
    tests = []
    of_day = range(DAY_S)
    edges = [at_s for at_s in (*week.opens, *week.closes) if at_s in of_day]
    last_s = max(at_s for at_s in week.closes if at_s < 5 * DAY_S)
    for start_s in (*(at_s - 301 for at_s in edges), last_s - 307):
        series = input_series(week.series(start_s), Fault(set()), 900, step_s)
        checks = never("page|ticket", 885)
        tests.append(make_test(f"from {start_s}", series, step_s, checks))
    # A job that is started anew publishes nothing for a quarter of a minute.
    newest = f"{G}newest_window_timestamp_seconds"

    def restarted(at_s: int) -> float:
        return 299 if 300 <= at_s < 315 else at_s - 1

    series = input_series({**WELL, newest: restarted}, Fault(set()), 600, step_s)
    tests.append(make_test("a restart", series, step_s, never("page", 585)))
    promtool(tmp_path, 5, *tests)


def test_a_quiet_night_is_a_ticket_where_nobody_knows_the_hours(
    tmp_path: Path,
) -> None:
    """Nobody is woken, and in the morning it can be read why."""
    week = Week("XKRX")
    [closes_s] = [at_s for at_s in week.closes if at_s in range(DAY_S)]
    night = week.series(closes_s - 60, **{OPEN: gone})
    series = input_series(night, Fault(set()), 900, 15)
    checks = never("page", 885), firing(885, {"FeedQuietAtSomeHour"})
    promtool(tmp_path, 5, make_test("night", series, 15, *checks))


@pytest.mark.parametrize("base", ["https://docs.example", None])
def test_an_alert_links_to_the_table(tmp_path: Path, base: str | None) -> None:
    """On the site that the external label names, or else in a checkout."""
    series = [{"series": f"{T}ledger_off_by_trades", "values": "3x9"}]
    page = "docs/alerts.md" if base is None else f"{base}/alerts.html"
    expected = {
        "exp_labels": {"severity": "page"},
        "exp_annotations": {
            "summary": "The ledger does not balance",
            "description": "Trades were lost, or counted wrongly.",
            "runbook_url": f"{page}#alerts",
        },
    }
    test = {
        "interval": "5s",
        "input_series": series,
        "external_labels": {} if base is None else {"tickthrottle_docs": base},
        "alert_rule_test": [
            {
                "eval_time": "30s",
                "alertname": "TickthrottleLedgerOff",
                "exp_alerts": [expected],
            }
        ],
    }
    promtool(tmp_path, 5, test)
