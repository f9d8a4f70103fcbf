// Which columns the table has, in which order, and which of them it has room for. Pure.

import { phrase } from "../language.js";

const COLUMNS = {
  star: { label: phrase("Watch") },
  name: { label: phrase("Stock"), order: "name" },
  isin: { label: "ISIN", order: "isin", rem: 10.5 },
  price: { label: phrase("Price"), order: "price", isNumber: true, rem: 7.5, tallRem: 6 },
  change: { label: phrase("Change"), order: "change", isNumber: true, rem: 13, tallRem: 5.7 },
  spark: { label: phrase("Trend"), rem: 7.5, tallRem: 6 },
  range: { label: phrase("Range"), rem: 9.5, tallRem: 8 },
  turnover: { label: phrase("Turnover"), order: "turnover", isNumber: true, rem: 7, tallRem: 6 },
  volume: { label: phrase("Volume"), order: "volume", isNumber: true, rem: 6.5, tallRem: 5.5 },
  trades: { label: phrase("Trades"), order: "trades", isNumber: true, rem: 8, tallRem: 6.5 },
  time: { label: phrase("Last trade"), order: "time", isNumber: true, rem: 7.8, tallRem: 7 },
};

// How wide the figures in view are, in digits (format.js): of the widest price, difference, per
// cent, and of both ends of a range.
export const NO_WIDTHS = { price: 0, difference: 0, ratio: 0, ends: 0 };

// The wider of two in each; the first one itself if nothing is wider.
export function widest(before, more) {
  const isWider = Object.keys(more).some((name) => more[name] > before[name]);
  return isWider ? Object.fromEntries(Object.keys(more).map((name) => [name, Math.max(before[name], more[name])])) : before;
}

// What a column needs for them, in rem, in the widest of the fonts that pages are read in. In
// tall rows a wide price is written smaller, and the per cent is below the difference.
const NEEDED = {
  price: ({ price }) => 1.6 + 0.66 * price,
  change: ({ difference, ratio }) => 2.5 + 0.61 * difference + Math.max(4.9, 0.5 + 0.61 * ratio),
  range: ({ ends }) => 1.8 + 0.44 * ends,
};
const TALL_NEEDED = {
  price: ({ price }) => 1 + 0.57 * price,
  change: ({ difference, ratio }) => 1 + 0.53 * Math.max(difference, 0.8 + ratio),
  range: ({ ends }) => 1.2 + 0.44 * ends,
};
const TALL_LONG = 7.8;

export const labelOf = (id) => COLUMNS[id].label;

// What may be moved, in its usual order; and what of it can be left out, in the order in
// which it gets room.
export const MOVABLE = ["isin", "price", "change", "spark", "range", "turnover", "volume", "trades", "time"];
const OPTIONAL = ["turnover", "spark", "trades", "range", "volume", "time", "isin"];
const SUMS = ["turnover", "volume"];
const ORDERS_THAT_STAND_IN = ["turnover", "trades"];

export const isOptional = (id) => OPTIONAL.includes(id);

// A name comes before what else there is to say; in tall rows what belongs together is in
// two lines.
const TALL_BELOW_REM = 52;
const [STAR_REM, NAME_REM] = [2.9, 17];
const [TALL_STAR_REM, TALL_NAME_REM] = [2.1, 9];

// What a visitor has chosen: {order: ids, hidden: set of ids, isDense}. Whatever else is
// kept in its place is put right.
export function parseChoice(text) {
  let kept = {};
  try {
    kept = JSON.parse(text ?? "{}") ?? {};
  } catch {
    // Then it is the usual one.
  }
  const list = (value) => (Array.isArray(value) ? value : []);
  const known = [...new Set(list(kept.order))].filter((id) => MOVABLE.includes(id));
  const order = [...known, ...MOVABLE.filter((id) => !known.includes(id))];
  return { order, hidden: new Set(list(kept.hidden).filter(isOptional)), isDense: kept.isDense === true };
}

export const choiceText = ({ order, hidden, isDense }) => JSON.stringify({ order, hidden: [...hidden], isDense });

// Another order, with a column one place to the left (-1) or right (1).
export function moved(order, id, by) {
  const from = order.indexOf(id);
  const to = from + by;
  if (to < 0 || to >= order.length) return order;
  const changed = [...order];
  [changed[from], changed[to]] = [changed[to], changed[from]];
  return changed;
}

const layouts = new Map();
const MOST_LAYOUTS = 100;

// Returns {columns, isTall, isDense, isLong}; the same object for the same layout. `hasSums`:
// trades say what was traded in the day so far; `widths`: of the figures in view; `isLong`: a
// price is too long for a tall row, if it is not written smaller.
export function layoutFor(widthRem, hasNames, { hasSums = false, choice = parseChoice(null), widths = NO_WIDTHS } = {}) {
  const isTall = widthRem < TALL_BELOW_REM;
  const isLong = isTall && widths.price > TALL_LONG;
  const remOf = (id) => {
    const { rem, tallRem = rem } = COLUMNS[id];
    const needed = (isTall ? TALL_NEEDED : NEEDED)[id]?.(widths) ?? 0;
    return Math.max(isTall ? tallRem : rem, needed);
  };
  const shown = new Set(["price", "change"]);
  let leftRem = widthRem - (isTall ? TALL_STAR_REM + TALL_NAME_REM : STAR_REM + NAME_REM);
  for (const id of shown) leftRem -= remOf(id);
  for (const id of OPTIONAL) {
    if (choice.hidden.has(id) || (SUMS.includes(id) && !hasSums)) continue;
    if (id === "isin" && (isTall || !hasNames)) continue;
    leftRem -= remOf(id);
    if (leftRem < 0) break;
    shown.add(id);
  }
  // What an instrument without a name is called by is not left out.
  const first = ["star", hasNames ? "name" : "isin"];
  const ids = [...first, ...choice.order.filter((id) => shown.has(id))];
  const wide = Object.keys(NEEDED).map(remOf);
  const key = `${ids} ${isTall} ${choice.isDense} ${isLong} ${wide}`;
  if (layouts.size > MOST_LAYOUTS) layouts.clear();
  if (!layouts.has(key)) {
    const columns = ids.map((id) => ({ id, ...COLUMNS[id], rem: remOf(id), isFitted: id in NEEDED }));
    layouts.set(key, { columns, isTall, isDense: choice.isDense, isLong });
  }
  return layouts.get(key);
}

// The order asked for, if its column is there: nobody could see why the rows are so.
export function orderAmong({ columns }, order) {
  const has = (id) => columns.some((column) => column.order === id);
  if (has(order.column)) return order;
  const isUsual = ORDERS_THAT_STAND_IN.includes(order.column);
  const other = isUsual ? ORDERS_THAT_STAND_IN.find(has) : undefined;
  return { column: other ?? "change", direction: "descending" };
}
