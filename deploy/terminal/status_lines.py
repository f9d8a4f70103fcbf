"""Whether all is well, in a few lines: what ``/v1/pipeline`` says. Pure."""

from collections.abc import Iterator, Mapping
from datetime import datetime, tzinfo
from typing import Any

MARKS = {"ok": "ok", "warn": "warning", "bad": "FAULT", "unknown": "?"}
"""How the levels of a diagnosis are written."""


def status_lines(answer: Mapping[str, Any], zone: tzinfo | None = None) -> list[str]:
    """Return the lines for an answer of ``/v1/pipeline``; times are of ``zone``.

    First what is wrong and what to do, or since when all is well; then a line a stage.
    """
    diagnosis = answer["diagnosis"]
    lines = [line for f in diagnosis["findings"] for line in _finding(f, zone)]
    if not lines:
        since = _clock(diagnosis["well_since_ms"], zone)
        or_earlier = "" if diagnosis["is_well_since_exact"] else " or earlier"
        lines = [f"All is well since {since}{or_earlier}."]
    figures = {
        "feed": _feed(answer),
        "log": _log(answer),
        "job": "; ".join(_job(job, zone) for job in answer["jobs"]),
        "stream": _stream(answer, zone),
        "gateway": _gateway(answer),
        "clients": _clients(answer),
    }
    for stage, state in diagnosis["stages"].items():
        mark = MARKS[state["level"]]
        lines.append(f"{stage:<8} {mark:<8} {figures.get(stage, '')}".rstrip())
    return lines


def _finding(finding: Mapping[str, Any], zone: tzinfo | None) -> Iterator[str]:
    since_ms = finding["since_ms"]
    since = "" if since_ms is None else f" since {_clock(since_ms, zone)}"
    detail = "" if finding["detail"] is None else f": {finding['detail']}"
    yield f"{MARKS[finding['level']]}: {finding['text']}{since}{detail}."
    yield f"  {finding['todo']}"


def _feed(answer: Mapping[str, Any]) -> str:
    quiet_ms = answer["feed"]["quiet_ms"]
    if quiet_ms is None:
        return "no trade yet"
    return f"last trade {_ago(quiet_ms)}"


def _log(answer: Mapping[str, Any]) -> str:
    log = answer["log"]
    return log["problem"] or f"{log['kind']}, {len(log['partitions'])} partitions"


def _job(job: Mapping[str, Any], zone: tzinfo | None) -> str:
    books = "books balance" if job["balanced"] else "BOOKS DO NOT BALANCE"
    lags = [partition["lag"] for partition in job["partitions"]]
    behind = "?" if None in lags else f"{sum(lags):,}"
    window = _clock(job["cut_ms"], zone)
    return (
        f"{job['job']}: window {window}, {behind} trades behind it, {books} "
        f"({job['total']['read']:,} read)"
    )


def _stream(answer: Mapping[str, Any], zone: tzinfo | None) -> str:
    stream = answer["stream"]
    if stream["window"] is None:
        return "no window yet"
    return (
        f"window {_clock(stream['window'], zone)}, offset {stream['offset']:,}, "
        f"{stream['issues']:,} issues"
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


def _clock(moment_ms: int, zone: tzinfo | None) -> str:
    return datetime.fromtimestamp(moment_ms / 1000, zone).strftime("%H:%M:%S")
