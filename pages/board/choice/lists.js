// A visitor's watch-lists. Pure: {active, lists: Map name -> set of ISINs}; a change is a
// new object. There is always one list, and one is the active one.

import { phrase, say } from "../../language.js";
import { ISIN, parseWatchList } from "../watchlist.js";

// What the first list is called by itself; it is kept in English.
export const FIRST = phrase("Watch-list");
const MOST_LISTS = 20;
const MOST_INSTRUMENTS = 1_000;
const MOST_NAME = 40;

// What the browser has kept, whoever was at it; `before` is the one list of former days.
export function parseLists(text, before = null) {
  const lists = new Map();
  let active = null;
  try {
    const kept = JSON.parse(text ?? "null");
    for (const [name, isins] of kept?.lists ?? []) {
      if (nameProblem({ lists }, name) === null) lists.set(name, parseWatchList(JSON.stringify(isins)));
    }
    active = kept?.active;
  } catch {
    // Then it begins anew.
  }
  if (!lists.size) lists.set(FIRST, parseWatchList(before));
  return { active: lists.has(active) ? active : lists.keys().next().value, lists };
}

export const listsText = ({ active, lists }) =>
  JSON.stringify({ active, lists: [...lists].map(([name, isins]) => [name, [...isins].sort()]) });

export const listName = (name) => (name === FIRST ? say(FIRST) : name);

export const activeList = ({ active, lists }) => lists.get(active);

// Why no list may be called so, null if one may.
export function nameProblem({ lists }, name) {
  if (typeof name !== "string" || !name.trim()) return say("A list needs a name.");
  if (name.length > MOST_NAME) return say("A name has at most {most} characters.", { most: MOST_NAME });
  if (lists.has(name)) return say("There is a list “{name}”.", { name });
  if (lists.size >= MOST_LISTS) return say("There are {most} lists, and no more are kept.", { most: MOST_LISTS });
  return null;
}

// With a list of these instruments, which becomes the active one.
export const withList = ({ lists }, name, isins) => ({
  active: name,
  lists: new Map([...lists, [name, isins]]),
});

// Without the active list; the last one is emptied.
export function withoutActive({ active, lists }) {
  const rest = new Map(lists);
  rest.delete(active);
  if (!rest.size) rest.set(FIRST, new Set());
  return { active: rest.keys().next().value, lists: rest };
}

// One instrument a line: its ISIN, and its name behind "#" for whoever reads it.
export function exportText(isins, instruments) {
  return [...isins]
    .sort()
    .map((isin) => (instruments.get(isin)?.name ? `${isin}  # ${instruments.get(isin).name}` : isin))
    .join("\n");
}

// The instruments that a text names, by ISIN or code, one or several a line; what follows "#" is
// a remark. Returns {isins, unknown: words that name none, left: instruments beyond 1,000}.
export function importText(text, isinOf) {
  const isins = new Set();
  const unknown = [];
  let left = 0;
  const words = text.split("\n").flatMap((line) => line.split("#")[0].split(/[\s,;]+/).filter(Boolean));
  for (const word of words) {
    const isin = isinOf(word);
    if (isin === null || !ISIN.test(isin)) unknown.push(word);
    else if (isins.size < MOST_INSTRUMENTS) isins.add(isin);
    else left += isins.has(isin) ? 0 : 1;
  }
  return { isins, unknown, left };
}
