// The orders of the board's rows. Pure: a row is what row.js says.

import { nameOf } from "./names.js";

// Column -> what it is sorted by, and which way first. A row without a value is last,
// whichever way; equals are in the order of ISINs.
export const ORDERS = {
  name: { key: (row) => nameOf(row.instrument, row.isin), first: "ascending" },
  isin: { key: (row) => row.isin, first: "ascending" },
  price: { key: (row) => row.price, first: "descending" },
  change: { key: (row) => row.change.ratio, first: "descending" },
  turnover: { key: (row) => row.turnover, first: "descending" },
  volume: { key: (row) => row.volume, first: "descending" },
  trades: { key: (row) => row.trades, first: "descending" },
  time: { key: (row) => row.item.time, first: "descending" },
};

const OTHER = { ascending: "descending", descending: "ascending" };

// The order after a press on a column's header.
export function nextOrder(order, column) {
  if (order.column === column) return { column, direction: OTHER[order.direction] };
  return { column, direction: ORDERS[column].first };
}

const compareTexts = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

export function comparator({ column, direction }) {
  const { key } = ORDERS[column];
  const sign = direction === "ascending" ? 1 : -1;
  return (a, b) => {
    const left = key(a);
    const right = key(b);
    if (left === right) return compareTexts(a.isin, b.isin);
    if (left === null) return 1;
    if (right === null) return -1;
    return sign * compareTexts(left, right);
  };
}
