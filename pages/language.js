// The language of a page, and how its texts are said in it. What is said stands in English
// where it is used; korean.js has the Korean of each text, operations/korean.js of what
// the operators' page adds, and a test holds them to each other. Pure, but for the one
// language that a page has.
//
//   say("{count} found", { count: 2_879 })    "2,879 found"; a number is grouped
//   say("{count} instrument|{count} instruments", { count: 1 })    one, else several
//   say("price::Close")    what stands before "::" tells apart what English does not
//   phrase("Turnover")     marks a text of a table, which is said when it is drawn
//   parts("{key} searches", { key: html`<kbd>/</kbd>` })    with markup within
//   learn({ Turnover: "거래대금" })    a page adds what it alone says

import { KOREAN } from "./korean.js";

export const LANGUAGES = { en: "English", ko: "한국어" };

let current = "en";
let korean = KOREAN;

export function learn(words) {
  korean = { ...korean, ...words };
}

export const language = () => current;

export function setLanguage(name) {
  current = Object.hasOwn(LANGUAGES, name) ? name : "en";
}

// The language a visitor wants: the one chosen before, else the first of those that the
// browser asks for ("ko-KR", "en") that there is, else English.
export function wantedLanguage(chosen, asked) {
  if (Object.hasOwn(LANGUAGES, chosen)) return chosen;
  const names = asked.map((name) => name.toLowerCase().split("-")[0]);
  return names.find((name) => Object.hasOwn(LANGUAGES, name)) ?? "en";
}

export const phrase = (text) => text;

// Whether there is a Korean text of it.
export const isTranslated = (text) => Object.hasOwn(korean, text);

export function say(text, values = {}) {
  return form(text, values).replace(PLACE, (place, name) => written(values[name]) ?? place);
}

// The same as a list of texts and whatever stands between them.
export function parts(text, values) {
  return form(text, values)
    .split(PLACES)
    .map((part) => (PLACES.test(part) ? written(values[part.slice(1, -1)]) : part));
}

const PLACE = /\{(\w+)\}/g;
const PLACES = /(\{\w+\})/;
const numbers = new Intl.NumberFormat("en");

const written = (value) => (typeof value === "number" ? numbers.format(value) : value);

function form(text, { count }) {
  const translated = current === "ko" ? korean[text] : undefined;
  if (translated !== undefined) return translated;
  const [one, several = one] = text.slice(text.indexOf("::") < 0 ? 0 : text.indexOf("::") + 2).split("|");
  return count === 1 ? one : several;
}
