// A line of the ledger in words. Pure.

import { say } from "../language.js";
import { count } from "./words.js";

export const refused = (books) => Object.values(books.refused ?? {}).reduce((a, b) => a + b, 0);

// What a decoder made of entries that are not one trade each, or nothing.
export function decoded(books) {
  const skipped = Object.entries(books.skipped ?? {}).filter(([, number]) => number > 0);
  const words = skipped.map(([name, number]) =>
    say("{count} entry skipped as {name}|{count} entries skipped as {name}", { count: number, name }),
  );
  if (books.extra > 0) words.push(say("{count} trade more than entries|{count} trades more than entries", { count: books.extra }));
  return words.join(", ");
}

// "bad_price 12, future_time 3", the most frequent first.
export function reasons(books) {
  return Object.entries(books.refused ?? {})
    .filter(([, number]) => number > 0)
    .sort((a, b) => b[1] - a[1])
    .map(([reason, number]) => `${reason} ${count(number)}`)
    .join(", ");
}
