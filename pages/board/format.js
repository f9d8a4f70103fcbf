// How figures are written. Pure: times and differences are for the eye, prices keep their
// digits, but for zeros that say nothing: a title has every digit.

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

// How many places a price needs: zeros behind them say nothing, but of two that are written.
export function placesNeeded(price) {
  const text = String(price);
  const point = text.indexOf(".");
  if (point < 0) return 0;
  let end = text.length;
  while (end > point + 3 && text[end - 1] === "0") end -= 1;
  return end - point - 1;
}

const MOST_CHARS = 16; // of a price with places, unless its whole part is longer
const FEWEST_ZEROS = 4; // that are counted instead of written

// "97123.45000000" with 2 places -> "97,123.45", "0.00000846" -> "0.0₅846": a price with so many
// places as its instrument's prices need (row.js). Only digits that no screen has room for are cut.
export function eyeText(price, needed = placesNeeded(price)) {
  const further = places(price) - needed;
  const text = priceText(further > 0 ? String(price).slice(0, -further) : price);
  const [, before, zeros, rest] = /^(-?0\.)(0+)([1-9]\d*)$/.exec(text) ?? [];
  const isCounted = zeros?.length >= FEWEST_ZEROS;
  const short = isCounted ? `${before}0${subscript(zeros.length)}${rest}` : text;
  const point = short.indexOf(".");
  if (point < 0 || short.length <= MOST_CHARS) return short;
  return `${short.slice(0, Math.max(point, MOST_CHARS - 1))}…`;
}

const subscript = (count) => String(count).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]);

// What a title says of a text for the eye, if it is another one than the price with every digit.
export const fullTitle = (price, shown) => (priceText(price) === shown ? undefined : priceText(price));

// How wide a figure is, in digits: a point and a comma are about half of one.
export const widthOf = (text) => text.length - 0.45 * (text.match(/[.,]/g)?.length ?? 0);

// The difference between two prices: {kind, difference, ratio}. Binary arithmetic is good
// enough to look at. Without a reference there is none.
export function changeOf(price, reference) {
  if (reference === null || !Number(reference)) return { kind: "", difference: 0, ratio: null };
  const difference = Number(price) - Number(reference);
  const kind = difference > 0 ? "up" : difference < 0 ? "down" : "";
  return { kind, difference, ratio: difference / Number(reference) };
}

const ARROWS = { up: "▲", down: "▼", "": "" };

const DIFFERENCE_DIGITS = 6;

// Colour is never the only cue: the arrow says it as well. Of a price with many places the
// difference is rounded; `isFull`: to all places of its prices.
export function differenceText({ kind, difference, ratio }, digits, isFull = false) {
  if (ratio === null) return "–";
  const size = Math.abs(difference);
  const before = Math.floor(Math.log10(size || 1)) + 1;
  const least = Math.min(digits, before > DIFFERENCE_DIGITS ? 0 : 2);
  const shown = isFull ? digits : Math.min(digits, Math.max(least, DIFFERENCE_DIGITS - before));
  const text = size.toFixed(shown);
  return `${ARROWS[kind]}${kind ? " " : ""}${isFull ? priceText(text) : eyeText(text)}`;
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
