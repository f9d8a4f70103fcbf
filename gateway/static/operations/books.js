// Does a line of the ledger balance? Pure.

export const refused = (books) => Object.values(books.refused ?? {}).reduce((a, b) => a + b, 0);

export const accounted = (books) =>
  books.published + books.superseded + books.stale + refused(books);

// What is wrong with a line in a few words, null if nothing is. The log may have been
// asked at an older window than the newest: then it has counted fewer.
export function imbalance(books) {
  const missing = books.read - accounted(books);
  if (missing > 0) return `${missing} unaccounted`;
  if (missing < 0) return `${-missing} too many`;
  const counted = books.log ?? null;
  if (counted !== null && counted > books.read) return `${counted - books.read} not read`;
  return null;
}

// "bad_price 12, future_time 3", the most frequent first.
export function reasons(books) {
  return Object.entries(books.refused ?? {})
    .filter(([, number]) => number > 0)
    .sort((a, b) => b[1] - a[1])
    .map(([reason, number]) => `${reason} ${number.toLocaleString("en")}`)
    .join(", ");
}
