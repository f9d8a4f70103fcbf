// A line of the ledger in words. Pure.

export const refused = (books) => Object.values(books.refused ?? {}).reduce((a, b) => a + b, 0);

// What a decoder made of entries that are not one trade each, or nothing.
export function decoded(books) {
  const skipped = Object.entries(books.skipped ?? {}).filter(([, number]) => number > 0);
  const words = skipped.map(([name, number]) => `${number.toLocaleString("en")} entries skipped as ${name}`);
  if (books.extra > 0) words.push(`${books.extra.toLocaleString("en")} trades more than entries`);
  return words.join(", ");
}

// "bad_price 12, future_time 3", the most frequent first.
export function reasons(books) {
  return Object.entries(books.refused ?? {})
    .filter(([, number]) => number > 0)
    .sort((a, b) => b[1] - a[1])
    .map(([reason, number]) => `${reason} ${number.toLocaleString("en")}`)
    .join(", ");
}
