// Which markets are closed, and when they open: as /v1/market-hours tells it. Pure.

import { phrase, say } from "../language.js";
import { dayClockText } from "../times.js";

const CLOSED = phrase("{market} is closed.");
const OPENS = phrase("{market} is closed, opens {time}.");

// Of each market that is closed a sentence; nothing of one that should have opened by now.
export function closedText(states, nowMs) {
  return states
    .filter(({ open, opens }) => !open && (opens === null || opens > nowMs))
    .map(({ market, opens }) =>
      opens === null ? say(CLOSED, { market }) : say(OPENS, { market, time: dayClockText(opens, nowMs) }),
    )
    .join(" ");
}
