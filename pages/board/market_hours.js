// Which markets are open, until when, and when they open: as /v1/market-hours tells it. Pure.

import { phrase, say } from "../language.js";
import { dayClockText, zonedMinuteText } from "../times.js";

const CLOSED = phrase("{market} is closed.");
const OPENS = phrase("{market} is closed, opens {time}.");
const OPEN = phrase("{market} is open.");
const CLOSES = phrase("{market} is open until {time}.");

// Of each market that is open a sentence; nothing of one that should have closed by now.
export function openText(states, nowMs) {
  return states
    .filter(({ open, closes }) => open && (closes === null || closes > nowMs))
    .map(({ market, closes }) =>
      closes === null ? say(OPEN, { market }) : say(CLOSES, { market, time: zonedMinuteText(closes) }),
    )
    .join(" ");
}

// Of each market that is closed a sentence; nothing of one that should have opened by now.
export function closedText(states, nowMs) {
  return states
    .filter(({ open, opens }) => !open && (opens === null || opens > nowMs))
    .map(({ market, opens }) =>
      opens === null ? say(CLOSED, { market }) : say(OPENS, { market, time: dayClockText(opens, nowMs) }),
    )
    .join(" ");
}
