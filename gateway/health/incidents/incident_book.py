"""Which faults there were: what, since when, until when, and what was done. Pure.

A finding that is a warning or bad is an incident from the first look that has it until
the first of the looks, over ``SETTLE_MS``, that do not have it any more. One that comes
back sooner is the same incident. That a job publishes nothing lasts while it starts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Annotated

from pydantic import Field

from gateway.health.finding_codes import Level, Stage
from gateway.health.findings import Finding

KEPT = 500
"""Incidents that are remembered; beyond it the oldest that have ended are forgotten."""

KEPT_MS = 14 * 86_400_000
"""An incident is forgotten this long after its end."""

SETTLE_MS = 10_000
"""What is away for less has not ended."""

NOTE_CHARS = 500
"""Length of the longest note."""

_DETAIL_CHARS = 500

_STARTS = frozenset({"starting", "start_fails"})

_UNTIL_PUBLISHED = frozenset({"job_dead", "job_behind", "start_fails"})


@dataclass(frozen=True, slots=True)
class Incident:
    """One fault; times in ms. ``until_ms`` is null while it lasts.

    ``since_ms`` is what the finding says, or else when it was seen first. ``times`` is
    how often it was seen to begin. ``note`` is what an operator wrote.
    """

    id: Annotated[str, Field(examples=["job_dead-1773964802000-0"])]
    code: Annotated[str, Field(examples=["job_dead"])]
    level: Annotated[Level, Field(examples=["bad"])]
    stage: Annotated[Stage, Field(examples=["job"])]
    text: Annotated[str, Field(examples=["The throttle job has been dead"])]
    detail: Annotated[str | None, Field(examples=[None])]
    job: Annotated[str | None, Field(examples=["throttle"])]
    since_ms: Annotated[int, Field(examples=[1773964802000])]
    until_ms: Annotated[int | None, Field(examples=[1773964862000])]
    times: Annotated[int, Field(examples=[1])]
    note: Annotated[str, Field(examples=["started it again on the other machine"])]


@dataclass(slots=True)
class _Open:
    incident: Incident
    gone_ms: int | None = None


@dataclass(slots=True)
class IncidentBook:
    """The incidents that last and those that have ended."""

    _ended: list[Incident] = field(default_factory=list)
    _open: dict[tuple[str, str | None], _Open] = field(default_factory=dict)

    @classmethod
    def of(cls, incidents: Iterable[Incident]) -> "IncidentBook":
        """Go on with incidents of before; what lasted then is waited for."""
        book = cls()
        for incident in incidents:
            if incident.until_ms is None:
                book._open[incident.code, incident.job] = _Open(incident)
            else:
                book._ended.append(incident)
        return book

    def observe(self, findings: Sequence[Finding], now_ms: int) -> bool:
        """Take in what is wrong at the moment; say whether an incident changed."""
        present = {(f.code, f.job): f for f in findings if _is_incident(f)}
        before = self.incidents()
        for key, finding in present.items():
            self._see(key, finding, now_ms)
        jobs = {f.job for f in findings if f.code in _STARTS}
        for code, job in self._open.keys() - present.keys():
            # "No job has published" names none.
            is_awaited = bool(jobs) and (job is None or job in jobs)
            if code not in _UNTIL_PUBLISHED or not is_awaited:
                self._miss((code, job), now_ms)
        self._forget(now_ms)
        return self.incidents() != before

    def incidents(self) -> list[Incident]:
        """Return all of them: those that last first, each kind newest first."""
        lasting = [entry.incident for entry in self._open.values()]
        lasting.sort(key=lambda incident: incident.since_ms, reverse=True)
        return lasting + sorted(self._ended, key=_end_ms, reverse=True)

    def note(self, incident_id: str, text: str) -> bool:
        """Write down what was done; False if there is no such incident."""
        for entry in self._open.values():
            if entry.incident.id == incident_id:
                entry.incident = replace(entry.incident, note=text)
                return True
        for place, incident in enumerate(self._ended):
            if incident.id == incident_id:
                self._ended[place] = replace(incident, note=text)
                return True
        return False

    def _see(self, key: tuple[str, str | None], finding: Finding, now_ms: int) -> None:
        entry = self._open.get(key)
        if entry is None:
            since_ms = now_ms if finding.since_ms is None else finding.since_ms
            of_it = finding.code, finding.level, finding.stage, *_words(finding)
            new_id = self._new_id(f"{finding.code}-{since_ms}")
            incident = Incident(
                *(new_id, *of_it, finding.job), since_ms, None, times=1, note=""
            )
            self._open[key] = _Open(incident)
            return
        incident = entry.incident
        if finding.level == "bad" and incident.level == "warn":
            # It is told as it has been at worst.
            text, detail = _words(finding)
            incident = replace(incident, level="bad", text=text, detail=detail)
        times = incident.times + (entry.gone_ms is not None)
        entry.incident = replace(incident, times=times)
        entry.gone_ms = None

    def _new_id(self, begin: str) -> str:
        """Return an id that no other incident has, also none of before a restart."""
        taken = {incident.id for incident in self.incidents()}
        return next(i for i in (f"{begin}-{n}" for n in count()) if i not in taken)

    def _miss(self, key: tuple[str, str | None], now_ms: int) -> None:
        entry = self._open[key]
        if entry.gone_ms is None:
            entry.gone_ms = now_ms
        elif now_ms - entry.gone_ms >= SETTLE_MS:
            del self._open[key]
            self._ended.append(replace(entry.incident, until_ms=entry.gone_ms))

    def _forget(self, now_ms: int) -> None:
        young = [one for one in self._ended if _end_ms(one) > now_ms - KEPT_MS]
        room = max(0, KEPT - len(self._open))
        self._ended = sorted(young, key=_end_ms)[max(0, len(young) - room) :]


def _is_incident(finding: Finding) -> bool:
    # A closed market is quiet, too: that is a fault only if the settings say so.
    is_closed = finding.code == "quiet" and finding.level == "warn"
    return finding.level in ("warn", "bad") and not is_closed


def _words(finding: Finding) -> tuple[str, str | None]:
    detail = None if finding.detail is None else finding.detail[:_DETAIL_CHARS]
    return finding.text, detail


def _end_ms(incident: Incident) -> int:
    return incident.until_ms or 0
