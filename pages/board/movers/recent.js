// Bursts and moves of the newest minutes, as the gateway lists them. Pure.

import { readBars } from "../../tick.js";

export const RECENT_MS = 600_000;
export const SHOWN = 3;

const MOVE_DECIMALS = /"(from|to|percent)":(-?\d[\d.eE+-]*)/g;

// The texts of /v1/bursts and /v1/moves; prices keep their digits, as decimal text. Each has
// startMs and endMs besides: times of moves are in microseconds there.
export const readBursts = (text) => timed(readBars(text).data, 1);

export const readMoves = (text) => timed(JSON.parse(text.replace(MOVE_DECIMALS, '"$1":"$2"')).data, 1_000);

const timed = (found, perMs) =>
  found.map((event) => ({ ...event, startMs: event.start / perMs, endMs: event.end / perMs }));

// The newest few that ended within the minutes up to `nowMs`, which is by the exchange's
// clock; null where none were ever told: nobody makes them, most likely.
export function recent(found, nowMs) {
  if (!found.length) return null;
  return found.filter(({ endMs }) => endMs > nowMs - RECENT_MS).slice(0, SHOWN);
}
