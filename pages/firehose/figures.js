// What is counted on each side, and how the sides compare. Pure.

import { countText } from "../board/format.js";

const SPAN_MS = 6_000;

// Sums of amounts by name: all of them, and a second's mean over the newest six seconds.
export class Meter {
  constructor(beganMs) {
    this.totals = {};
    this._beganMs = beganMs;
    this._newest = [];
  }

  add(nowMs, amounts) {
    this._newest.push([nowMs, amounts]);
    for (const [name, amount] of Object.entries(amounts)) {
      this.totals[name] = this.total(name) + amount;
    }
    this._forget(nowMs);
  }

  total(name) {
    return this.totals[name] ?? 0;
  }

  // Per second; 0 in the first one, in which it would say nothing.
  rate(name, nowMs) {
    this._forget(nowMs);
    const spanMs = Math.min(SPAN_MS, nowMs - this._beganMs);
    if (spanMs < 1_000) return 0;
    const sum = this._newest.reduce((all, [, amounts]) => all + (amounts[name] ?? 0), 0);
    return (sum * 1_000) / spanMs;
  }

  _forget(nowMs) {
    const kept = this._newest.findIndex(([timeMs]) => timeMs > nowMs - SPAN_MS);
    if (kept !== 0) this._newest.splice(0, kept < 0 ? this._newest.length : kept);
  }
}

// How many times more there was on the left: "38", "4.3"; null while there is nothing.
export function timesText(left, right) {
  if (!left || !right) return null;
  const times = left / right;
  return times >= 10 ? countText(Math.round(times)) : times.toFixed(1);
}

// "812 B", "4.1 kB", "193 kB", "2.4 MB"
export function bytesText(bytes) {
  if (bytes < 1_000) return `${Math.round(bytes)} B`;
  const [value, unit] = bytes < 999_500 ? [bytes / 1e3, "kB"] : bytes < 999.5e6 ? [bytes / 1e6, "MB"] : [bytes / 1e9, "GB"];
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)} ${unit}`;
}
