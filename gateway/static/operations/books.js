// A line of the ledger in words. Pure.

export const refused = (books) => Object.values(books.refused ?? {}).reduce((a, b) => a + b, 0);

// "bad_price 12, future_time 3", the most frequent first.
export function reasons(books) {
  return Object.entries(books.refused ?? {})
    .filter(([, number]) => number > 0)
    .sort((a, b) => b[1] - a[1])
    .map(([reason, number]) => `${reason} ${number.toLocaleString("en")}`)
    .join(", ");
}
