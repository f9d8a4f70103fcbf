"""From what is wrong at many moments to the list of what was wrong."""

from dataclasses import replace

from gateway.health.finding_codes import CODES, Level
from gateway.health.findings import Finding
from gateway.health.incidents.incident_book import (
    KEPT,
    KEPT_MS,
    SETTLE_MS,
    IncidentBook,
)

NOW_MS = 1_773_964_802_000


def make_finding(
    code: str,
    since_ms: int | None = None,
    job: str | None = None,
    level: Level | None = None,
) -> Finding:
    """Return a finding as the judge would word it."""
    kind = CODES[code]
    return Finding(
        code,
        level or kind.level,
        kind.stage,
        kind.text,
        None,
        since_ms,
        kind.todo,
        job,
        kind.word,
    )


def test_an_incident_begins_lasts_and_ends() -> None:
    """Its end is when it was not there any more, known a while later."""
    book = IncidentBook()
    dead = make_finding("job_dead", NOW_MS - 5_000, "throttle")
    assert book.observe([dead], NOW_MS)
    [incident] = book.incidents()
    assert (incident.since_ms, incident.until_ms) == (NOW_MS - 5_000, None)
    assert (incident.code, incident.job) == ("job_dead", "throttle")
    assert not book.observe([dead], NOW_MS + 1_000)
    assert not book.observe([], NOW_MS + 2_000)
    assert not book.observe([], NOW_MS + 1_999 + SETTLE_MS)
    assert book.observe([], NOW_MS + 2_000 + SETTLE_MS)
    [incident] = book.incidents()
    assert (incident.until_ms, incident.times) == (NOW_MS + 2_000, 1)


def test_what_comes_back_soon_is_the_same_incident() -> None:
    """It counts how often it began; later it is another one."""
    book = IncidentBook()
    down = make_finding("redis_down")
    for at_ms, findings in (
        (0, [down]),
        (1_000, []),
        (SETTLE_MS, [down]),
        (SETTLE_MS + 1_000, []),
        (2 * SETTLE_MS + 1_000, []),
        (3 * SETTLE_MS, [down]),
    ):
        book.observe(findings, NOW_MS + at_ms)
    lasting, ended = book.incidents()
    assert (lasting.since_ms, lasting.times) == (NOW_MS + 3 * SETTLE_MS, 1)
    assert (ended.since_ms, ended.times) == (NOW_MS, 2)
    assert lasting.id != ended.id


def test_it_is_as_bad_as_it_was_at_worst() -> None:
    """A warning that becomes a fault and a warning again was a fault: it says so."""
    book = IncidentBook()
    for level in ("warn", "bad", "warn"):
        finding = replace(make_finding("overloaded", level=level), text=level)
        book.observe([finding], NOW_MS)
    assert [(one.level, one.text) for one in book.incidents()] == [("bad", "bad")]


def test_no_two_incidents_have_one_id_after_a_restart_either() -> None:
    """The same fault, since the same moment: a note is of the one that was meant."""
    dead = make_finding("job_dead", NOW_MS - 5_000, "throttle")
    book = IncidentBook()
    for later in (False, True):
        book = IncidentBook.of(book.incidents())
        at_ms = NOW_MS + later * 10 * SETTLE_MS
        book.observe([dead], at_ms)
        book.observe([], at_ms + 1_000)
        book.observe([], at_ms + 1_000 + SETTLE_MS)
    assert len({incident.id for incident in book.incidents()}) == 2


def test_what_is_no_fault_is_no_incident() -> None:
    """A job that starts, and a market that is closed."""
    book = IncidentBook()
    quiet = replace(make_finding("quiet"), level="warn")
    assert not book.observe([make_finding("starting"), quiet], NOW_MS)
    assert book.observe([make_finding("quiet")], NOW_MS)


def test_a_job_that_starts_again_has_not_published_yet() -> None:
    """What was wrong with it lasts; other incidents, and other jobs', end."""
    book = IncidentBook()
    dead, none = make_finding("job_dead", NOW_MS, "high"), make_finding("job_dead")
    other, down = make_finding("job_dead", NOW_MS, "low"), make_finding("redis_down")
    book.observe([dead, none, other, down], NOW_MS)
    starts, fails = (make_finding(c, job="high") for c in ("starting", "start_fails"))
    for at_ms, finding in (
        (1_000, starts),
        (2_000 + SETTLE_MS, starts),
        (62_000, fails),
        (63_000, starts),
        (64_000 + SETTLE_MS, starts),
    ):
        book.observe([finding], NOW_MS + at_ms)
    lasting = [one for one in book.incidents() if one.until_ms is None]
    assert sorted((one.code, one.job) for one in lasting if one.job) == [
        ("job_dead", "high"),
        ("start_fails", "high"),
    ]
    assert len(lasting) == 3
    for at_ms in (90_000, 90_000 + SETTLE_MS):
        book.observe([], NOW_MS + at_ms)
    ends = {(one.code, one.job): one.until_ms for one in book.incidents()}
    assert ends["job_dead", "high"] == ends["start_fails", "high"] == NOW_MS + 90_000
    assert ends["job_dead", "low"] == NOW_MS + 1_000


def test_jobs_have_incidents_of_their_own() -> None:
    """The newest comes first."""
    book = IncidentBook()
    one, two = (make_finding("job_dead", NOW_MS + n, f"job-{n}") for n in (1, 2))
    book.observe([one, two], NOW_MS)
    assert [incident.job for incident in book.incidents()] == ["job-2", "job-1"]


def test_notes_are_kept_with_incidents_that_last_and_have_ended() -> None:
    """There is nothing to note at an incident nobody knows."""
    book = IncidentBook()
    book.observe([make_finding("redis_down")], NOW_MS)
    [incident] = book.incidents()
    assert book.note(incident.id, "waited")
    book.observe([], NOW_MS + 1)
    book.observe([], NOW_MS + 1 + SETTLE_MS)
    assert [one.note for one in book.incidents()] == ["waited"]
    assert book.note(incident.id, "waited, then restarted it")
    assert [one.note for one in book.incidents()] == ["waited, then restarted it"]
    assert not book.note("job_dead-1-0", "what?")


def test_a_book_goes_on_where_another_stopped() -> None:
    """What lasted then and is over now ends at the first look."""
    before = IncidentBook()
    before.observe([make_finding("redis_down"), make_finding("log_away")], NOW_MS)
    book = IncidentBook.of(before.incidents())
    assert book.incidents() == before.incidents()
    for at_ms in (60_000, 60_000 + SETTLE_MS):
        book.observe([make_finding("redis_down")], NOW_MS + at_ms)
    lasting, ended = book.incidents()
    assert (lasting.code, lasting.since_ms, lasting.times) == ("redis_down", NOW_MS, 1)
    assert (ended.code, ended.until_ms) == ("log_away", NOW_MS + 60_000)


def test_incidents_are_forgotten_by_age_and_by_number() -> None:
    """The oldest go first; what lasts stays."""
    book = IncidentBook()
    book.observe([make_finding("log_away")], NOW_MS)
    lasts = make_finding("log_away")
    for n in range(KEPT + 3):
        at_ms = NOW_MS + 3 * SETTLE_MS * n
        book.observe([lasts, make_finding("redis_down")], at_ms)
        book.observe([lasts], at_ms + 1)
        book.observe([lasts], at_ms + 1 + SETTLE_MS)
    incidents = book.incidents()
    assert len(incidents) == KEPT
    assert len({one.id for one in incidents}) == KEPT
    assert incidents[0].code == "log_away"
    assert incidents[-1].since_ms == NOW_MS + 3 * SETTLE_MS * 4
    book.observe([lasts], at_ms + 2 + KEPT_MS)
    assert [one.code for one in book.incidents()] == ["log_away"]
