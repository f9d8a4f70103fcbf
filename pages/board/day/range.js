// The lowest and highest price of an instrument's day: as the analytics job tells them, and as
// later prices widen them. Pure.

import { readBars } from "../../tick.js";
import { places } from "../format.js";

// The text of /v1/days as [{isin, start, end, low, high, digits}], times in ms. Where no
// trade counts for the range, the first one that does begins it.
export const readDays = (text) =>
  readBars(text).data.map(({ isin, start, end, low, high }) => {
    const digits = Math.max(places(low), places(high));
    return { isin, start, end, low: Number(low ?? Infinity), high: Number(high ?? -Infinity), digits };
  });

// What is known of an instrument's day once the job has told more of it: whoever is further in
// time is right, and of one day both are.
export function joined(known, told) {
  if (known === undefined || known.start < told.start) return told;
  if (known.start > told.start) return known;
  const digits = Math.max(known.digits, told.digits);
  return { ...told, digits, low: Math.min(known.low, told.low), high: Math.max(known.high, told.high) };
}

// The day once there was a trade at a time, in a window that went so high and low: the same
// object if it changes nothing, as where no trade counts for the range (NaN). A trade behind
// its end begins another one, as long, at its own price: others of its window may still be
// of the day before.
export function widened(day, price, timeMs, high = price, low = price) {
  if (!Number.isFinite(high) || timeMs < day.start) return day;
  if (timeMs >= day.end) {
    const length = day.end - day.start;
    const start = day.end + Math.floor((timeMs - day.end) / length) * length;
    // A price that does not count for the range is none of the day's.
    const first = Math.min(Math.max(price, low), high);
    return { ...day, start, end: start + length, low: first, high: first };
  }
  if (low >= day.low && high <= day.high) return day;
  return { ...day, low: Math.min(day.low, low), high: Math.max(day.high, high) };
}

// Whether a trade with this field `updates` counts for the range (docs/sums.md).
export const countsForRange = (updates) => updates?.includes?.("range") ?? true;

// Where in a range a price is, 0 to 1; null while there is no range.
export function placeIn({ low, high }, price) {
  return high > low ? Math.min(Math.max((price - low) / (high - low), 0), 1) : null;
}
