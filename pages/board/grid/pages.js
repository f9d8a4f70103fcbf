// Which charts of a list are shown. Pure.

import { comparator } from "../order.js";

export const AT_ONCE = 9;

const byName = comparator({ column: "name", direction: "ascending" });

// The rows of a page, by name: an order that no trade changes. Pages count from 0; one
// behind the last is the last. Returns {rows, page, first, count}, first from 0.
export function pageOf(rows, page) {
  const last = Math.max(0, Math.ceil(rows.length / AT_ONCE) - 1);
  const place = Math.min(last, Math.max(0, page));
  const first = place * AT_ONCE;
  const sorted = [...rows].sort(byName);
  return { rows: sorted.slice(first, first + AT_ONCE), page: place, first, count: rows.length };
}
