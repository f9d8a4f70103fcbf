"""Make the calendars that come with the product, before a release.

    python packaging/make_calendars.py --last 2027-12-31

It needs ``exchange_calendars`` (Apache-2.0), which the product does not: install it
into an environment of its own. It knows the regular sessions of exchanges, their
holidays and most of their odd days. ``CLOSED_DAYS`` and ``ODD_DAYS`` are those that it
does not know, and Nextrade's hours are ours. Read what has changed in the files before
you keep them.
"""

import argparse
import json
from collections import Counter
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "ingest" / "market_hours" / "calendars"

EXCHANGES = ("XKRX", "XNYS", "XNAS", "BVMF")

EXAM_DAYS = ("2025-11-13", "2026-11-19", "2027-11-18")
"""Days of Korea's entrance examination (Ministry of Education): all is an hour late."""

ODD_DAYS = {"XKRX": {day: ["10:00-16:30"] for day in EXAM_DAYS}}

PUBLIC_HOLIDAYS = ("2026-06-03", "2026-07-17")
"""Days on which Korea's exchange is closed, as on every public holiday: the local
elections of 2026, and Constitution Day, a holiday again by the law of February 2026.
"""

CLOSED_DAYS = {"XKRX": PUBLIC_HOLIDAYS}

SUPPLEMENTS = {
    "XKRX": "; exam days: Ministry of Education; public holidays: Public Holidays Act"
}

CLOSING_MINUTES = {"XKRX": 10}
"""Trading at the close's price begins ten minutes after the end (KRX, off-hours)."""

NXT_SESSIONS = ["08:00-08:50", "09:00-15:20", "15:40-20:00"]
"""Nextrade's pre-market, main market (from 09:00:30) and after-market."""

NXT_ODD_SESSIONS = {
    "10:00-15:30": ["10:00-15:20", "15:40-20:00"],
    "10:00-16:30": ["10:00-16:20", "16:40-20:00"],
}
"""By the sessions of XKRX, without a pre-market: nobody says its hours on such days."""


def exchange(name: str, first: str, last: str) -> dict[str, Any]:
    """Return the calendar of an exchange between two days."""
    # What is ours is in this file, and a test reads it without the library.
    import exchange_calendars

    known = exchange_calendars.get_calendar(name, start=first, end=last)
    sessions = {
        day.date().isoformat(): "-".join(
            moment.tz_convert(known.tz).strftime("%H:%M") for moment in (opens, closes)
        )
        for day, opens, closes in zip(
            known.schedule.index,
            known.schedule["open"],
            known.schedule["close"],
            strict=True,
        )
    }
    for day in CLOSED_DAYS.get(name, ()):
        sessions.pop(day, None)
    usual = Counter(sessions.values()).most_common(1)[0][0]
    weekdays = (
        day.isoformat()
        for number in range(
            date.fromisoformat(first).toordinal(),
            date.fromisoformat(last).toordinal() + 1,
        )
        if (day := date.fromordinal(number)).weekday() < 5
    )
    other = {day: [session] for day, session in sessions.items() if session != usual}
    return {
        "market": name,
        "zone": str(known.tz),
        "source": f"exchange_calendars {exchange_calendars.__version__}"
        + SUPPLEMENTS.get(name, ""),
        "made": datetime.now(UTC).date().isoformat(),
        "first": first,
        "last": last,
        "days": "Mon-Fri",
        "sessions": [usual],
        "closing_minutes": CLOSING_MINUTES.get(name, 0),
        "closed": [day for day in weekdays if day not in sessions],
        "other": dict(sorted((other | ODD_DAYS.get(name, {})).items())),
    }


def nextrade(korea: dict[str, Any]) -> dict[str, Any]:
    """Return the calendar of Nextrade, which is closed when the exchange is."""
    other = {day: NXT_ODD_SESSIONS[odd] for day, (odd,) in korea["other"].items()}
    source = "hours: Nextrade, as of 2025; days: those of XKRX"
    return korea | {
        "market": "NXT",
        "source": source,
        "sessions": NXT_SESSIONS,
        "closing_minutes": 0,
        "other": other,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", default="2025-01-01")
    parser.add_argument("--last", required=True)
    arguments = parser.parse_args()
    made = [exchange(name, arguments.first, arguments.last) for name in EXCHANGES]
    made.append(nextrade(made[0]))
    made.append(
        {
            "market": "24/7",
            "zone": "UTC",
            "days": "Mon-Sun",
            "sessions": ["00:00-24:00"],
        }
    )
    for calendar in made:
        path = FOLDER / f"{calendar['market'].replace('/', '-')}.json"
        path.write_text(json.dumps(calendar, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
