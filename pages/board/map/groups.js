// How the map of the market divides instruments: by sector, else by market; how large each is.
// Pure: a row is what row.js says.

import { phrase, say } from "../../language.js";

const KINDS = ["sector", "market"];
export const OTHERS = phrase("Others"); // the group of an instrument that is in none

export const groupName = (name) => (name === OTHERS ? say(OTHERS) : name);

// What instruments are grouped by: "sector", "market" if no instrument has a sector, null if none has
// either.
export const groupKind = (rows) => KINDS.find((kind) => rows.some(({ instrument }) => instrument?.[kind])) ?? null;

export const groupOf = (row, kind) => (kind && row.instrument?.[kind]) || OTHERS;

// What an instrument's area is in proportion to: its turnover of the day so far; where nobody
// tells turnover, the trades since the page opened. 0 has no area.
export const sizeOf = (row, hasSums) => (hasSums ? (row.turnover ?? 0) : Math.max(1, row.trades));

// Group -> its rows.
export function grouped(rows, kind) {
  const groups = new Map();
  for (const row of rows) {
    const name = groupOf(row, kind);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(row);
  }
  return groups;
}

// What is said of a group: {name, instruments, up, down, same, size}.
export function summary(name, rows, hasSums) {
  const sum = { name, instruments: rows.length, up: 0, down: 0, same: 0, size: 0 };
  for (const row of rows) {
    sum[row.change.kind || "same"] += 1;
    sum.size += sizeOf(row, hasSums);
  }
  return sum;
}
