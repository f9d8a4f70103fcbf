// What an alert is, and when it is due. Pure.
//
//   {id, isin, kind, way, value, isOnce, isDone, side, burstMs, toldMs, toldPrice, toldWindow}
//
// kind      "price" (it reaches the value), "change" (it is as many per cent from the
//           previous close, or more), "burst" (a burst of trading has ended)
// way       "up", "down", "either"
// value     decimal text; null of a burst
// side      where the price shown last is: -1 below, 0 at, 1 above the value (of a change:
//           beyond it, downwards or upwards; 0 between); null before the first
// burstMs   end of the newest burst that is known; null before the first answer
// toldMs    when it was last told, by this browser's clock, at toldPrice; null: never
// toldWindow  the end of the window that price came with; null: it is not known
// isDone    it was to be told once, and has been

import { countsForRange } from "../day/range.js";
import { compareDecimals, isDecimal, sideOfChange } from "./decimal.js";

export const KINDS = ["price", "change", "burst"];
export const WAYS = ["up", "down", "either"];

export const NEW = { isDone: false, side: null, burstMs: null, toldMs: null, toldPrice: null, toldWindow: null };

// By which price alerts go, of an item whose trades went so high and low: its own. Of a trade
// that does not count for the range, the nearest price of the others; null if there is none.
export function decisivePrice({ price, updates }, { high, low } = {}) {
  if (countsForRange(updates)) return price;
  if (![price, high, low].every(isDecimal)) return null;
  if (compareDecimals(price, high) > 0) return high;
  return compareDecimals(price, low) < 0 ? low : price;
}

// On which side a price is; null if that is not known.
export function sideOf({ kind, value }, price, close) {
  if (!isDecimal(price)) return null;
  if (kind === "price") return compareDecimals(price, value);
  if (kind === "change" && isDecimal(close) && Number(close) > 0) return sideOfChange(price, close, value);
  return null;
}

// Whether going from one side to the other is what an alert waits for. It is armed again
// by going back, since then the other side is where it comes from.
export function isCrossed({ kind, way }, from, to) {
  if (from === null || to === null) return false;
  const isUp = kind === "price" ? from < 0 && to >= 0 : from <= 0 && to > 0;
  const isDown = kind === "price" ? from > 0 && to <= 0 : from >= 0 && to < 0;
  return (isUp && way !== "down") || (isDown && way !== "up");
}

// What becomes of an alert when a price is shown: {alert, isDue}; the same alert if nothing
// does. It came with a window that went so high and low: what was only touched counts, in
// each window once, whichever tab has told it.
export function judged(alert, price, close, nowMs, { window = null, high = price, low = price } = {}) {
  const side = alert.isDone ? null : sideOf(alert, price, close);
  if (side === null) return { alert, isDue: false };
  const isTold = window !== null && alert.toldWindow !== null && window <= alert.toldWindow;
  const reached = isTold ? [price] : [price, high, low];
  const at = reached.find((each) => isCrossed(alert, alert.side, sideOf(alert, each, close)));
  if (at === undefined) return { alert: side === alert.side ? alert : { ...alert, side }, isDue: false };
  return { alert: { ...told(alert, at, nowMs), side, toldWindow: window ?? alert.toldWindow }, isDue: true };
}

// The same when the newest bursts are known, newest first: [{isin, end}].
export function judgedByBursts(alert, bursts, nowMs) {
  if (alert.isDone || alert.kind !== "burst") return { alert, isDue: false };
  const endMs = bursts.reduce((most, { isin, end }) => (isin === alert.isin ? Math.max(most, end) : most), 0);
  if (alert.burstMs === null) return { alert: { ...alert, burstMs: endMs }, isDue: false };
  if (endMs <= alert.burstMs) return { alert, isDue: false };
  return { alert: { ...told(alert, null, nowMs), burstMs: endMs }, isDue: true };
}

const told = (alert, toldPrice, toldMs) => ({ ...alert, toldMs, toldPrice, isDone: alert.isOnce });

// Waiting anew, from the price that is shown now; undefined if there is none.
export const armed = (alert, price, close) => ({ ...alert, ...NEW, side: sideOf(alert, price, close) });
