// The board index of a market: what all its listed shares are worth beside what they were worth
// at the previous close, which is 1,000. It is the board's own, no exchange's. Pure.
//
// Those shares count whose previous close and number the instrument table has; what has not
// traded counts at its previous close. Binary arithmetic is good enough for two places.

import { priceText } from "../format.js";

const BASE = 1_000;

// How many shares of an instrument count; 0: it does not.
export const weightOf = (instrument) => (Number(instrument?.prev_close) > 0 ? Number(instrument.listed_shares ?? 0) : 0);

// Market -> what its shares were worth at the previous close. A market in several currencies has
// no sum, nor has one without shares.
export function basesOf(instruments) {
  const bases = new Map();
  const currencies = new Map();
  for (const instrument of instruments) {
    const [weight, { market, currency }] = [weightOf(instrument), instrument];
    if (!weight || !market) continue;
    if (!currencies.has(market)) currencies.set(market, currency);
    const sum = currencies.get(market) === currency ? (bases.get(market) ?? 0) : NaN;
    bases.set(market, sum + weight * Number(instrument.prev_close));
  }
  return bases;
}

// The level of a market whose shares are worth so much more than their base; null without one.
export const levelOf = (base, gained) => (base > 0 ? BASE * (1 + gained / base) : null);

// "1,002.31"
export const levelText = (level) => priceText(level.toFixed(2));

// The change of a level since the previous close, as a row has one (format.js).
export function levelChange(level) {
  const difference = Number((level - BASE).toFixed(2));
  const kind = difference > 0 ? "up" : difference < 0 ? "down" : "";
  return { kind, difference, ratio: difference / BASE };
}
