// The alerts as the browser keeps them, and what a visitor may set. Pure.

import { say } from "../../language.js";
import { ISIN } from "../watchlist.js";
import { isDecimal } from "./decimal.js";
import { KINDS, WAYS } from "./rules.js";

export const MOST_ALERTS = 100;
const MOST_PERCENT = 1_000;
const ID = /^[a-z0-9-]{1,40}$/;

// What the browser has kept, whoever was at it: what is no alert is left out, and so is
// what is beyond the first hundred.
export function parseAlerts(text) {
  let kept = [];
  try {
    kept = JSON.parse(text ?? "[]");
  } catch {
    // Then there are none.
  }
  const alerts = new Map();
  for (const each of Array.isArray(kept) ? kept : []) {
    const alert = alertOf(each);
    if (alert !== null && alerts.size < MOST_ALERTS) alerts.set(alert.id, alert);
  }
  return [...alerts.values()];
}

export const alertsText = (alerts) => JSON.stringify(alerts);

function alertOf(each) {
  const { id, isin, kind, way, value, isOnce, isDone, side, burstMs, toldMs, toldPrice, toldWindow } = each ?? {};
  const isOne = typeof id === "string" && ID.test(id) && typeof isin === "string" && ISIN.test(isin);
  if (!isOne || !KINDS.includes(kind) || !WAYS.includes(way)) return null;
  if (kind !== "burst" && (typeof value !== "string" || valueProblem(kind, value) !== null)) return null;
  return {
    id,
    isin,
    kind,
    way,
    value: kind === "burst" ? null : value,
    isOnce: isOnce === true,
    isDone: isDone === true,
    side: [-1, 0, 1].includes(side) ? side : null,
    burstMs: Number.isFinite(burstMs) ? burstMs : null,
    toldMs: Number.isFinite(toldMs) ? toldMs : null,
    toldPrice: isDecimal(toldPrice) ? toldPrice : null,
    toldWindow: Number.isFinite(toldWindow) ? toldWindow : null,
  };
}

// "200,000" -> "200000": what a visitor typed as decimal text, right or not.
export const typedValue = (text) => text.replace(/[\s,%]/g, "").replace(/^0+(?=\d)/, "");

// Why an alert cannot have this value, null if it can.
export function valueProblem(kind, value) {
  if (kind === "burst") return null;
  if (!isDecimal(value) || !(Number(value) > 0)) return say("The value is a number above zero.");
  if (kind === "change" && Number(value) > MOST_PERCENT) return say("A change is at most {most} %.", { most: MOST_PERCENT });
  return null;
}

// Why there cannot be one more, null if there can.
export function numberProblem(alerts) {
  if (alerts.length < MOST_ALERTS) return null;
  return say("There are {most} alerts, and no more are kept.", { most: MOST_ALERTS });
}
