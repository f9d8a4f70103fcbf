// The words of the pages, in Node, beside a copy of pages: whatever is said has a
// Korean text, and nothing is shown that is not said.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

import { shortText } from "./static/board/day/breadth.js";
import { KOREAN } from "./static/korean.js";
import { learn, parts, say, setLanguage, wantedLanguage } from "./static/language.js";
import { SENTENCES } from "./static/operations/gateway_words.js";
import { OPERATORS_KOREAN } from "./static/operations/korean.js";
import { closedText, openText } from "./static/board/market_hours.js";
import { clockText, dateText, dayClockText, momentText, setZone, zonedText } from "./static/times.js";

// Scripts that speak a visitor's language: all but the client.
const OTHERS = /^vendor|^(theme|tick|language)\.js$|korean\.js$/;
// Those of the operators' page alone.
const OPERATORS = /^operations(\.js|.(?!api|token_form))/;
const NAMES = readdirSync("static", { recursive: true }).filter((name) => /\.js$/.test(name) && !OTHERS.test(name));
const SOURCES = new Map(NAMES.map((name) => [name, readFileSync(`static/${name}`, "utf-8")]));

// Calls with the text they begin with, or whatever else stands there.
const CALL = /(?<![\w.])(say|phrase|parts)\(\s*("(?:[^"\\]|\\.)*"(?=\s*[,)])|[^\s)]+)/g;
const NAMED = /^[\w.]+([[(][\w.]+[\])]?)*( \?\? [\w.]+)?,?$/;

function calls() {
  const found = [];
  for (const [file, source] of SOURCES) {
    for (const [, call, first] of source.matchAll(CALL)) found.push({ file, call, first });
  }
  return found;
}

const said = (of = () => true) =>
  new Set(calls().filter(({ file, first }) => first.startsWith('"') && of(file)).map(({ first }) => JSON.parse(first)));
const places = (text) => [...new Set(text.match(/\{\w+\}/g))].sort();
const english = (text) => text.split("::").at(-1).split("|");

test("each text has a Korean one, with the same figures in it, and no Korean one is left over", () => {
  const [all, shared] = [said(), said((file) => !OPERATORS.test(file))];
  const dictionaries = [KOREAN, OPERATORS_KOREAN, SENTENCES];
  const keys = dictionaries.flatMap((words) => Object.keys(words));
  assert.ok(shared.size > 150 && all.size > shared.size + 150);
  assert.deepEqual([...shared].filter((text) => !(text in KOREAN)), []);
  assert.deepEqual([...all].filter((text) => !(text in KOREAN || text in OPERATORS_KOREAN)), []);
  assert.deepEqual(Object.keys({ ...KOREAN, ...OPERATORS_KOREAN }).filter((text) => !all.has(text)), []);
  assert.deepEqual(keys.filter((text, number) => keys.indexOf(text) !== number), []);
  for (const [text, korean] of dictionaries.flatMap(Object.entries)) {
    for (const form of english(text)) assert.deepEqual(places(korean), places(form), text);
    assert.doesNotMatch(korean, /\}(을|를|은|는|이|가|와|과)( |$|\.)/, "a particle depends on what is before it");
  }
});

test("what is said is written where it is said, or marked where it is kept", () => {
  const odd = calls().filter(({ first }) => !first.startsWith('"') && /^[`'(]/.test(first));
  assert.deepEqual(odd, []);
});

// The parts of a template that are markup, not code; what is within ${…} is blank.
function templates(source) {
  const found = [];
  const open = []; // for each template: where it began, how many braces are open, its text
  for (let at = 0; at < source.length; at += 1) {
    const top = open.at(-1);
    const [character, next] = [source[at], source[at + 1]];
    if (top !== undefined && top.braces === 0) {
      if (character === "\\") at += 1;
      else if (character === "`") found.push(...(top.isHtml ? [top.text] : []), ...(open.pop() ? [] : []));
      else if (character === "$" && next === "{") (top.braces = 1), (top.text += "\u0000"), (at += 1);
      else top.text += character;
    } else if (character === "/" && next === "/") {
      at = source.indexOf("\n", at);
    } else if (character === '"' || character === "'") {
      const quote = new RegExp(`(?:[^${character}\\\\\\n]|\\\\.)*${character}`, "y");
      quote.lastIndex = at + 1;
      if (quote.test(source)) at = quote.lastIndex - 1;
    } else if (character === "`") {
      open.push({ isHtml: source.slice(at - 4, at) === "html", braces: 0, text: "" });
    } else if (top !== undefined) {
      top.braces += { "{": 1, "}": -1 }[character] ?? 0;
    }
  }
  assert.equal(open.length, 0);
  return found;
}

const READ = /\s(aria-label|aria-valuetext|aria-description|title|placeholder|alt|label|name|note)="([^"]*)"/g;
const KEPT = new Set(["Enter", "Esc", "Space"]); // as the keys are marked

test("no text of the page's markup goes past a translation", () => {
  const bare = [];
  for (const [file, source] of SOURCES) {
    for (const text of templates(source)) {
      const shown = [...text.replace(/<[^>]*>/g, "\n").split(/[\n\u0000]/), ...[...text.matchAll(READ)].map(([, , value]) => value)];
      for (const line of shown.map((each) => each.trim())) {
        if (/[A-Za-z가-힣]{2}/.test(line) && !KEPT.has(line)) bare.push(`${file}: ${line}`);
      }
    }
  }
  assert.deepEqual(bare, []);
  assert.deepEqual(templates("html`<p a=${`x${y}`}>Hello ${f(() => html`<b>you</b>`)}</p>`"), ["<b>you</b>", "<p a=\u0000>Hello \u0000</p>"]);
});

test("the visitor's own choice comes before the browser's, and English is there for the rest", () => {
  assert.equal(wantedLanguage(null, ["ko-KR", "en"]), "ko");
  assert.equal(wantedLanguage(null, ["fr", "EN-us", "ko"]), "en");
  assert.equal(wantedLanguage(null, ["de"]), "en");
  assert.equal(wantedLanguage("en", ["ko"]), "en");
  assert.equal(wantedLanguage("toString", ["ko"]), "ko");
});

test("a text is said with its figures, in one or several", () => {
  const text = "amended by {count} late trade|amended by {count} late trades";
  assert.equal(say(text, { count: 1 }), "amended by 1 late trade");
  assert.equal(say(text, { count: 1_200 }), "amended by 1,200 late trades");
  assert.equal(say("price::Close"), "Close");
  assert.equal(say("{name} stays {odd}", { name: "{count}" }), "{count} stays {odd}");
  assert.deepEqual(parts("{left} {right} go from bar to bar.", { left: 1, right: "x" }), ["", "1", " ", "x", " go from bar to bar."]);
  setLanguage("ko");
  assert.equal(say(text, { count: 1 }), KOREAN[text].replace("{count}", "1"));
  assert.notEqual(say("price::Close"), say("button::Close"));
  assert.equal(say("nobody translated it"), "nobody translated it");
  learn({ "nobody translated it": "x" });
  assert.equal(say("nobody translated it"), "x");
  assert.equal(say("price::Close"), KOREAN["price::Close"]);
  setLanguage("nonsense");
  assert.equal(say("price::Close"), "Close");
});

test("sums are short in the units of the language", () => {
  setLanguage("ko");
  const sums = [0, 999, 9_999.4, 9_999.6, 45_600, 9_999_499, 99_999_500, 2_918_264_100, 178_000_000_000, 7.2e12, 1e16, null];
  const texts = ["0", "999", "9,999", "1.00만", "4.56만", "1,000만", "1.00억", "29.2억", "1,780억", "7.20조", "1.00경", "–"];
  assert.deepEqual(sums.map(shortText), texts);
  setLanguage("en");
  assert.equal(shortText(2_918_264_100), "2.92B");
});

test("a time is written by Korea's clock wherever the browser is", () => {
  const timeMs = Date.UTC(2026, 10, 23, 15, 0, 2);
  setZone("kst");
  assert.equal(clockText(timeMs), "00:00:02");
  assert.equal(dateText(timeMs), "2026-11-24");
  assert.equal(clockText(timeMs + 50.4, { withMilliseconds: true }), "00:00:02.050");
  assert.equal(zonedText(timeMs), "00:00:02 KST");
  assert.match(momentText(timeMs), /24 Nov 2026, 00:00:02/);
  setZone("nonsense");
  const local = new Date(timeMs);
  assert.equal(clockText(timeMs), local.toTimeString().slice(0, 8));
  assert.equal(clockText(timeMs + 50.4, { withMilliseconds: true }), `${clockText(timeMs)}.050`);
  assert.equal(zonedText(timeMs), `${clockText(timeMs)} local`);
});

test("a market that is closed says when it opens", () => {
  const nowMs = Date.UTC(2026, 10, 27, 7); // a Friday, 16:00 in Seoul
  const monday = Date.UTC(2026, 10, 30, 0);
  setZone("kst");
  assert.equal(dayClockText(monday, nowMs), "Mon 09:00 KST");
  assert.match(dayClockText(monday + 7 * 86_400_000, nowMs), /^Mon,? 7 Dec,? 09:00 KST$/);
  const korea = { market: "XKRX", open: false, closes: null, opens: monday };
  const coins = { market: "24/7", open: true, closes: null, opens: monday };
  const nobody = { market: "UTC", open: false, closes: null, opens: null };
  assert.equal(closedText([coins, korea, nobody], nowMs), "XKRX is closed, opens Mon 09:00 KST. UTC is closed.");
  assert.equal(closedText([coins], nowMs), "");
  assert.equal(closedText([korea], monday), ""); // it is asked anew
  const trading = { market: "NXT", open: true, closes: Date.UTC(2026, 10, 27, 11), opens: monday };
  assert.equal(openText([coins, korea, trading], nowMs), "24/7 is open. NXT is open until 20:00 KST.");
  assert.equal(openText([trading], trading.closes), "");
  setLanguage("ko");
  assert.match(closedText([korea], nowMs), /^XKRX 장이 닫혔습니다\. .*09:00 KST 개장\.$/);
  setLanguage("en");
  setZone("local");
});
