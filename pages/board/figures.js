// How the figures of a row are written: once for each version of it (row.js). Pure.

import { placeIn, rangeOf } from "./day/range.js";
import { differenceText, eyeText, fullTitle, placesNeeded, priceText, ratioText, widthOf } from "./format.js";

// Titles have every digit; undefined where the text has. `widths` is what columns.js goes by.
export function figuresOf(row) {
  const { version, item, change, digits } = row;
  const price = eyeText(item.price, digits);
  const difference = differenceText(change, digits);
  const full = differenceText(change, digits, true);
  const ratio = ratioText(change);
  const range = rangeFigures(row);
  return {
    version,
    price,
    priceTitle: fullTitle(item.price, price),
    difference,
    differenceTitle: full === difference ? undefined : full,
    ratio,
    range,
    widths: {
      price: widthOf(price),
      difference: widthOf(difference),
      ratio: widthOf(ratio),
      ends: range === null ? 0 : widthOf(range.ends[0]) + widthOf(range.ends[1]),
    },
  };
}

// {place: of the price, 0 to 1; ends: the lowest and the highest price for the eye; full: both
// with every digit}; null where there is no range.
function rangeFigures(row) {
  const { day, digits, price } = row;
  const range = rangeOf(row);
  const place = placeIn(range, price);
  if (place === null) return null;
  const most = Math.max(digits, placesNeeded(day?.low), placesNeeded(day?.high));
  const [low, high] = [range.low.toFixed(most), range.high.toFixed(most)];
  return { place, ends: [eyeText(low), eyeText(high)], full: [priceText(low), priceText(high)] };
}
