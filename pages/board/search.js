// What a search finds: by name, code, ISIN, market or sector, and by first consonants of
// what is Korean. Pure.

import { consonants, typed } from "./hangul.js";

const plain = (text) => text.normalize("NFC").toLowerCase();

// What an instrument is found by, made once: lines of text.
export function searchText(isin, instrument) {
  const { code, name, english_name: english, market, sector } = instrument ?? {};
  const text = plain([isin, code, name, english, market, sector].join("\n"));
  return `${text}\n${consonants(text)}`;
}

// The words of a search, each as what finds it (hangul.js); every one has to be found.
export function words(text) {
  return plain(text).split(/\s+/).filter(Boolean).map(typed);
}

export function matches(text, wanted) {
  return wanted.every((word) => (typeof word === "string" ? text.includes(word) : word.test(text)));
}
