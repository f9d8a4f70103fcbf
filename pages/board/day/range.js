// The lowest and highest price of an instrument's day, and what counts for them. Pure.

// Those of the day so far where it is known, else of what the page has seen: {low, high}.
// Where no trade counts for the range there is none, the highest is below the lowest.
export function rangeOf({ day, trace }) {
  if (day === undefined) return trace;
  return { low: Number(day.low ?? Infinity), high: Number(day.high ?? -Infinity) };
}

// Whether a trade with this field `updates` counts for the range (docs/rows.md).
export const countsForRange = (updates) => updates?.includes?.("range") ?? true;

// Where in a range a price is, 0 to 1; null while there is no range.
export function placeIn({ low, high }, price) {
  return high > low ? Math.min(Math.max((price - low) / (high - low), 0), 1) : null;
}
