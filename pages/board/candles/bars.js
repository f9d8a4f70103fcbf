// Bars of an instrument: which state of each is known, what a chart draws of them, and what a
// reader is told. Pure.

import { language, phrase, say } from "../../language.js";
import { isOlderBar } from "../../tick.js";
import { shortText } from "../day/breadth.js";
import { clockText, dateText, eyeText, places, placesNeeded, priceText } from "../format.js";

export const INTERVALS = {
  "1m": phrase("1 m"),
  "5m": phrase("5 m"),
  "15m": phrase("15 m"),
  "1h": phrase("1 h"),
  "1d": phrase("1 d"),
};

const MOST = 1_500;
const DAY_MS = 86_400_000;

// What is known and what came, each bar once, in its newest state, oldest first.
export function mergedBars(known, more) {
  const bars = new Map(known.map((bar) => [bar.start, bar]));
  for (const bar of more) {
    const before = bars.get(bar.start);
    if (before === undefined || !isOlderBar(bar, before)) bars.set(bar.start, bar);
  }
  return [...bars.values()].sort((a, b) => a.start - b.start).slice(-MOST);
}

// What a chart draws of a bar: of one whose trades set no price only its place in time.
export function candleOf({ start, open, high, low, close }) {
  const time = start / 1000;
  if (open === null) return { time };
  const prices = [open, high, low, close].filter((price) => price !== null).map(Number);
  return { time, open: Number(open), high: Math.max(...prices), low: Math.min(...prices), close: Number(close) };
}

// The day so far of an item (tick.js) as the bar of a day, whose end nobody has told.
export function barOfDay({ price, day }) {
  const { start, open = null, high = null, low = null, volume, value } = day;
  const mean = Number(value) / Number(volume);
  const vwap = Number.isFinite(mean) ? mean.toFixed(places(price) + 4).replace(/\.?0+$/, "") : null;
  return { start, end: start + DAY_MS, open, high, low, close: price, volume, value, vwap };
}

// A price or a sum; a dash where there is none. For the eye, or with every digit.
export const amountText = (amount) => (amount === null ? "–" : eyeText(amount));
export const fullText = (amount) => (amount === null ? "–" : priceText(amount));

export const kindOf = ({ open, close }) => {
  const rise = Number(close) - Number(open);
  return rise > 0 ? "up" : rise < 0 ? "down" : "soft";
};

export const digitsOf = (bars) =>
  bars.reduce((most, { open, high, low, close }) => Math.max(most, ...[open, high, low, close].map(placesNeeded)), 0);

// A day has the date on which most of it lies; anything shorter, a time of day.
export function spanText({ start, end }, interval) {
  if (interval === "1d") return dateText((start + end) / 2);
  return clockText(start).slice(0, 5);
}

// A price of a sum, shortened: its thousands and more are for the eye.
export function sumText(sum) {
  if (sum === null) return "–";
  const number = Number(sum);
  if (language() === "ko") return number < 1e4 ? priceText(sum) : shortText(number);
  for (const [size, unit] of [[1e12, "T"], [1e9, "B"], [1e6, "M"]]) {
    if (number >= size) return `${(number / size).toFixed(number >= 100 * size ? 0 : 1)} ${unit}`;
  }
  return priceText(sum);
}

// What a bar says, in words: for who cannot see it.
export function barText(bar, interval) {
  const text = (field) => fullText(bar[field]);
  const parts = [
    spanText(bar, interval),
    say("open {open}, high {high}, low {low}, close {close}", {
      open: text("open"),
      high: text("high"),
      low: text("low"),
      close: text("close"),
    }),
    bar.volume === null ? say("volume unknown") : say("volume {volume}", { volume: text("volume") }),
  ];
  if (!bar.closed) parts.push(say("still open"));
  if (bar.revision) parts.push(say("amended by {count} late trade|amended by {count} late trades", { count: bar.revision }));
  return parts.join(", ");
}

// Where a key leads from one bar to another, null for any other key.
export function barAfter(key, index, count) {
  const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -count, End: count };
  if (!(key in steps) || !count) return null;
  return Math.min(count - 1, Math.max(0, index + steps[key]));
}
