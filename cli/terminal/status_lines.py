"""Whether all is well, in a few lines: what ``/v1/pipeline`` says. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

MARKS = {"ok": "ok", "warn": "warning", "bad": "FAULT", "unknown": "?"}
"""How the levels of a diagnosis are written."""


@dataclass(frozen=True, slots=True)
class _Clock:
    """Writes times of day, with the date of those of another day than now."""

    now_ms: int
    zone: tzinfo | None

    def text(self, moment_ms: int) -> str:
        moment, now = self._at(moment_ms), self._at(self.now_ms)
        is_today = moment.date() == now.date()
        return moment.strftime("%H:%M:%S" if is_today else "%Y-%m-%d %H:%M:%S")

    def _at(self, moment_ms: int) -> datetime:
        return datetime.fromtimestamp(moment_ms / 1000, self.zone)


def status_lines(answer: Mapping[str, Any], zone: tzinfo | None = None) -> list[str]:
    """Return the lines for an answer of ``/v1/pipeline``; times are of ``zone``.

    First what is wrong and what to do, or since when all is well; then a line a stage.
    """
    diagnosis = answer["diagnosis"]
    clock = _Clock(answer["now_ms"], zone)
    lines = [line for f in diagnosis["findings"] for line in _finding(f, clock)]
    if not lines:
        since = clock.text(diagnosis["well_since_ms"])
        or_earlier = "" if diagnosis["is_well_since_exact"] else " or earlier"
        lines = [f"All is well since {since}{or_earlier}."]
    figures = {
        "feed": "; ".join([_feed(answer), *_markets(answer, clock)]),
        "log": _log(answer),
        "job": _jobs(answer, clock),
        "stream": _stream(answer, clock),
        "gateway": _gateway(answer),
        "clients": _clients(answer),
    }
    for stage, state in diagnosis["stages"].items():
        mark = MARKS[state["level"]]
        lines.append(f"{stage:<8} {mark:<8} {figures.get(stage, '')}".rstrip())
    return lines


def _finding(finding: Mapping[str, Any], clock: _Clock) -> Iterator[str]:
    since_ms = finding["since_ms"]
    since = "" if since_ms is None else f" since {clock.text(since_ms)}"
    detail = "" if finding["detail"] is None else f": {finding['detail']}"
    yield f"{MARKS[finding['level']]}: {finding['text']}{since}{detail}."
    yield f"  {finding['todo']}"


def _feed(answer: Mapping[str, Any]) -> str:
    quiet_ms = answer["feed"]["quiet_ms"]
    if quiet_ms is None:
        return "no trade yet" if _is_known(answer) else "not known"
    return f"last trade {_ago(quiet_ms)}"


def _markets(answer: Mapping[str, Any], clock: _Clock) -> Iterator[str]:
    for market in answer["markets"]:
        if market["opened_ms"] is not None:
            word, until, change_ms = "open", " until", market["closes_ms"]
        else:
            word, until, change_ms = "closed", ", opens", market["opens_ms"]
        change = "" if change_ms is None else f"{until} {clock.text(change_ms)}"
        yield f"{market['market']} {word}{change}"


def _log(answer: Mapping[str, Any]) -> str:
    log = answer["log"]
    return log["problem"] or f"{log['kind']}, {len(log['partitions'])} partitions"


def _is_known(answer: Mapping[str, Any]) -> bool:
    """Say whether the log could be asked; one in Redis that is not there could."""
    log = answer["log"]
    return answer["problem"] is None and not (log["problem"] and log["kind"] == "kafka")


def _jobs(answer: Mapping[str, Any], clock: _Clock) -> str:
    if answer["problem"] is not None:
        return "not known"
    return "; ".join(_job(job, clock) for job in answer["jobs"])


def _job(job: Mapping[str, Any], clock: _Clock) -> str:
    books = "books balance" if job["balanced"] else "BOOKS DO NOT BALANCE"
    lags = [partition["lag"] for partition in job["partitions"]]
    behind = "?" if None in lags else f"{sum(lags):,}"
    window = clock.text(job["cut_ms"])
    return (
        f"{job['job']}: window {window}, {behind} trades behind it, {books} "
        f"({job['total']['read']:,} read)"
    )


def _stream(answer: Mapping[str, Any], clock: _Clock) -> str:
    stream = answer["stream"]
    if stream["window"] is None:
        return "no window yet" if answer["problem"] is None else "not known"
    return (
        f"window {clock.text(stream['window'])}, offset {stream['offset']:,}, "
        f"{stream['instruments']:,} instruments"
    )


def _gateway(answer: Mapping[str, Any]) -> str:
    fanout = answer["fanout"]
    parts = [f"{fanout['rss_bytes'] / 2**20:.0f} MiB"]
    if fanout["publish_lag_ms"] is not None:
        parts.append(f"published {fanout['publish_lag_ms']} ms after a window's end")
    if fanout["fanout_lag_ms"] is not None:
        parts.append(f"last client {fanout['fanout_lag_ms']} ms")
    return ", ".join(parts)


def _clients(answer: Mapping[str, Any]) -> str:
    states = answer["fanout"]["states"]
    shown = [f"{count:,} {state}" for state, count in states.items() if count]
    return ", ".join(shown) or "none"


def _ago(ms: int) -> str:
    return f"{ms / 1000:.1f} s ago"
