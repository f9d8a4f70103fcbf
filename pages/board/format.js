// How figures are written. Pure: times and differences are for the eye, prices keep
// their digits.

import { phrase, say } from "../language.js";

export { clockText, dateText, momentText, zonedText, zoneText } from "../times.js";

// "1234567.50" -> "1,234,567.50": only the whole part is grouped, no digit is lost.
export function priceText(price) {
  const [, sign, whole, rest] = /^(-?)(\d+)(.*)$/.exec(String(price)) ?? [];
  if (whole === undefined) return String(price);
  return sign + whole.replace(/\B(?=(\d{3})+$)/g, ",") + rest;
}

export const countText = (count) => priceText(count);

export function places(price) {
  const text = String(price);
  const point = text.indexOf(".");
  return point < 0 ? 0 : text.length - point - 1;
}

// The difference between two prices: {kind, difference, ratio}. Binary arithmetic is good
// enough to look at. Without a reference there is none.
export function changeOf(price, reference) {
  if (reference === null || !Number(reference)) return { kind: "", difference: 0, ratio: null };
  const difference = Number(price) - Number(reference);
  const kind = difference > 0 ? "up" : difference < 0 ? "down" : "";
  return { kind, difference, ratio: difference / Number(reference) };
}

const ARROWS = { up: "▲", down: "▼", "": "" };

// Colour is never the only cue: the arrow says it as well.
export function differenceText({ kind, difference, ratio }, digits) {
  if (ratio === null) return "–";
  const size = priceText(Math.abs(difference).toFixed(digits));
  return `${ARROWS[kind]}${kind ? " " : ""}${size}`;
}

export function ratioText({ kind, ratio }) {
  if (ratio === null) return "";
  const sign = { up: "+", down: "−", "": "" }[kind];
  return `${sign}${(Math.abs(ratio) * 100).toFixed(2)}%`;
}

// What a screen reader says in place of the arrow.
export const KIND_WORDS = { up: phrase("up"), down: phrase("down"), "": phrase("unchanged") };

export function secondsText(ms) {
  return say("{seconds} s", { seconds: (Math.max(0, ms) / 1000).toFixed(1) });
}
