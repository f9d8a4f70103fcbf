// What every page has: the header, its state, the colours, and how to ask the gateway.
//
//   import { createShell, getJson, streamUrl, token, colour } from "./static/shell.js";
//   const shell = createShell({ page: "board" });    // or "operations", "firehose"
//   shell.setState("stale", { sinceMs, reason: "no window for 6 s" });
//
// The page has header#shell and p#banner; base.css has their style, theme.js runs first.
// Where a port has several pages, each has links to all. The token in the address's hash
// goes with every request and every link.
//
// Pages speak the visitor's language (language.js) and write times in the zone chosen
// (times.js): the header has a switch for each.

import { language, LANGUAGES, phrase, say, setLanguage, wantedLanguage } from "./language.js";
import { setZone, zone, zonedText, ZONES } from "./times.js";

const LABELS = {
  connecting: phrase("Connecting"),
  live: phrase("Live"),
  stale: phrase("Stale"),
  starting: phrase("Starting"),
  offline: phrase("Offline"),
  closed: phrase("Closed"),
};

const ICONS = {
  brand:
    '<svg viewBox="0 0 24 24" aria-hidden="true"><rect width="24" height="24" rx="6" fill="var(--accent)"/><path d="M4.5 16.5l4.5-6 4.5 3 6-7.5" fill="none" stroke="var(--on-accent)" stroke-width="2.4" stroke-linecap="round" stroke-linejoin="round"/></svg>',
  auto: '<svg viewBox="0 0 24 24" aria-hidden="true"><circle cx="12" cy="12" r="8" fill="none" stroke="currentColor" stroke-width="2"/><path d="M12 4a8 8 0 0 1 0 16z" fill="currentColor"/></svg>',
  light:
    '<svg viewBox="0 0 24 24" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round"><circle cx="12" cy="12" r="4"/><path d="M12 3v2M12 19v2M3 12h2M19 12h2M5.6 5.6 7 7M17 17l1.4 1.4M5.6 18.4 7 17M17 7l1.4-1.4"/></svg>',
  dark: '<svg viewBox="0 0 24 24" aria-hidden="true"><path d="M20 14.5A8 8 0 0 1 9.5 4a8 8 0 1 0 10.5 10.5z" fill="none" stroke="currentColor" stroke-width="2" stroke-linejoin="round"/></svg>',
};

const THEMES = { auto: phrase("as the system"), light: phrase("light"), dark: phrase("dark") };
const COLOURS = {
  korean: phrase("up is red, down is blue"),
  western: phrase("up is green, down is red"),
};

const root = document.documentElement;
const listeners = new Set();
const readers = new Set();

// Browsers send this part of the address to no server. Undefined without one.
export const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? undefined;

// Of a WebSocket; like every path here, as seen from the page: it may be served under a prefix.
export function streamUrl(path = "v1/stream") {
  const url = new URL(path, location.href);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  url.hash = "";
  return url.href;
}

// Headers to send with a request: the token, where there is one.
export function authorization() {
  return token === undefined ? {} : { Authorization: `Bearer ${token}` };
}

// Returns the answer's JSON; throws Error with the problem's detail, and its status.
// Options are fetch's, and `read`, in place of JSON.parse: readMessage of tick.js leaves
// prices their digits.
export async function getJson(path, { read = JSON.parse, ...options } = {}) {
  const response = await ask(path, options);
  return response.status === 204 ? null : read(await response.text());
}

// Returns the JSON that is at a path and the tag that names it; null, at almost no cost,
// while it is still what `tag` names. `read` takes the place of JSON.parse. Throws as getJson
// does.
export async function getNews(path, tag = null, read = JSON.parse) {
  const headers = tag === null ? {} : { "If-None-Match": tag };
  const response = await ask(path, { headers, cache: "no-store" });
  if (response.status === 304) return null;
  return { json: read(await response.text()), tag: response.headers.get("ETag") };
}

async function ask(path, { headers, ...options }) {
  const response = await fetch(path, {
    ...options,
    headers: { Accept: "application/json", ...authorization(), ...headers },
  });
  if (response.ok || response.status === 304) return response;
  const problem = await response.json().catch(() => ({}));
  const text = problem.detail ?? problem.title ?? `${path} answered ${response.status}`;
  throw Object.assign(new Error(text), { status: response.status, problem });
}

// Kept in the browser; a browser may refuse, then it lasts as long as the page.
export const storage = {
  read(name) {
    try {
      return localStorage.getItem(`tickthrottle.${name}`);
    } catch {
      return null;
    }
  },
  write(name, text) {
    try {
      if (text === null) localStorage.removeItem(`tickthrottle.${name}`);
      else localStorage.setItem(`tickthrottle.${name}`, text);
    } catch {
      // Nothing is lost but the memory of a choice.
    }
  },
};

// A token of base.css as the colour it is now, for a canvas: colour("up"). It is asked of
// the page once until colours change: each time, the whole page gets its style anew.
export function colour(name) {
  if (!colours.has(name)) colours.set(name, readColour(name));
  return colours.get(name);
}

const colours = new Map();

function readColour(name) {
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

// Have a callback called when colours change; returns a function that ends it.
export function onColours(callback) {
  listeners.add(callback);
  return () => listeners.delete(callback);
}

function tellColours() {
  colours.clear();
  listeners.forEach((callback) => callback());
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", tellColours);

// Have a callback called when the page has another language, or writes times in another
// zone; returns a function that ends it.
export function onWords(callback) {
  readers.add(callback);
  return () => readers.delete(callback);
}

// "12 s", "3 min 5 s", "2 h 14 min"
export function durationText(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return say("{seconds} s", { seconds });
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return say("{minutes} min {seconds} s", { minutes, seconds: seconds % 60 });
  return say("{hours} h {minutes} min", { hours: Math.floor(minutes / 60), minutes: minutes % 60 });
}

// Fills header#shell. Options: page ("board", "operations" or "firehose"), withPriceColours,
// for the switch between Korean and Western ones, and onRetry, which gives the banner a button
// "Try now" while the page is offline. Returns {setState, kind}:
//   setState(kind, {sinceMs, reason})
//     kind: connecting, live, stale, starting, offline, closed; of body[data-state] as well. Any
//     but the first two shows a banner: "No new prices since <clock>, <n> s
//     ago: <reason>". May be called again and again: only a change of kind is announced.
export function createShell({ page, withPriceColours = false, onRetry = null }) {
  beginWords();
  // Beside a verdict that something is wrong, "Live" would contradict it.
  const labels = page === "operations" ? { ...LABELS, live: phrase("Connected") } : LABELS;
  const header = document.getElementById("shell");
  const banner = createBanner(document.getElementById("banner"), onRetry);
  let [pill, told] = [null, {}];
  const build = () => {
    // The operators' page has a verdict that is read aloud, and nothing beside it.
    pill = make("span", { className: "pill", id: "state", role: page === "operations" ? null : "status" });
    const brand = make("span", { className: "brand" });
    brand.innerHTML = `${ICONS.brand}<span>tickthrottle</span>`;
    const tools = make("div", { className: "tools" });
    tools.append(zoneButton(), languageButton());
    if (withPriceColours) tools.append(coloursButton());
    tools.append(themeButton());
    header.replaceChildren(brand, navigation(page), pill, tools);
  };
  const shell = {
    kind: null,
    setState(kind, about = {}) {
      if (kind !== shell.kind) {
        pill.dataset.kind = document.body.dataset.state = kind;
        pill.textContent = say(labels[kind]);
      }
      shell.kind = kind;
      told = about;
      banner.show(kind, about);
    },
  };
  onWords(() => {
    const { kind } = shell;
    const focused = document.activeElement?.id;
    build();
    shell.kind = null;
    shell.setState(kind, told);
    if (focused) document.getElementById(focused)?.focus();
  });
  build();
  shell.setState("connecting");
  return shell;
}

function beginWords() {
  setLanguage(wantedLanguage(storage.read("language"), navigator.languages ?? []));
  setZone(storage.read("zone"));
  root.lang = language();
}

function chooseWords(name, value) {
  storage.write(name, value);
  if (name === "language") setLanguage(value);
  else setZone(value);
  root.lang = language();
  readers.forEach((callback) => callback());
}

// What the port has is known at once of pages that only operators have.
function navigation(page) {
  const nav = make("nav", { ariaLabel: say("Views"), hidden: true });
  const fill = (pages) => fillNavigation(nav, page, pages);
  const isOperators = page === "operations" || location.pathname.endsWith("/market");
  if (isOperators) fill(["/", "/market", "/firehose"]);
  else getJson("v1/version").then((version) => fill(version.pages)).catch(() => {});
  return nav;
}

function fillNavigation(nav, page, pages) {
  const hasMarket = pages.includes("/market");
  const all = [
    ["operations", hasMarket ? "/" : null, say("Operations")],
    ["board", hasMarket ? "/market" : "/", say("Market")],
    ["firehose", "/firehose", say("Firehose")],
  ];
  nav.hidden = pages.length < 2;
  for (const [name, path, text] of all.filter(([, path]) => pages.includes(path))) {
    const hash = token === undefined ? "" : `#token=${encodeURIComponent(token)}`;
    // Pages lie beside one another, under whatever prefix.
    const link = make("a", { href: `.${path}${hash}`, textContent: text });
    if (name === page) link.setAttribute("aria-current", "page");
    nav.append(link);
  }
}

function createBanner(banner, onRetry) {
  const [what, age, why] = [make("b"), make("span"), make("span", { className: "soft" })];
  const retry = make("button", { type: "button", onclick: onRetry });
  banner.replaceChildren(what, age, why, retry);
  banner.className = "banner";
  banner.hidden = true;
  let sinceMs = null;
  const tick = () => {
    const time = sinceMs === null ? "" : durationText(Date.now() - sinceMs);
    age.textContent = sinceMs === null ? "" : say("{time} ago", { time });
  };
  setInterval(tick, 1000);
  return {
    show(kind, { sinceMs: since = null, reason = "" }) {
      const isCalm = kind === "live" || kind === "connecting";
      if (isCalm && banner.hidden) return;
      banner.hidden = isCalm;
      banner.dataset.kind = kind;
      sinceMs = since;
      what.textContent =
        since === null
          ? say("Prices are not live")
          : say("No new prices since {time}", { time: zonedText(since) });
      why.textContent = reason;
      retry.textContent = say("Try now");
      retry.hidden = kind !== "offline" || onRetry === null;
      tick();
    },
  };
}

function themeButton() {
  return switchButton("theme", Object.keys(THEMES), "auto", (button, theme) => {
    button.innerHTML = ICONS[theme];
    button.ariaLabel = button.title = say("Colour scheme: {theme}", { theme: say(THEMES[theme]) });
  });
}

function coloursButton() {
  return switchButton("colours", Object.keys(COLOURS), "korean", (button, colours) => {
    button.innerHTML = '<span aria-hidden="true"><span class="up">▲</span><span class="down">▼</span></span>';
    button.ariaLabel = button.title = say("Price colours: {colours}", { colours: say(COLOURS[colours]) });
  });
}

// In the language that it leads to: who cannot read this one finds it.
function languageButton() {
  const next = language() === "ko" ? "en" : "ko";
  const button = make("button", { type: "button", className: "quiet word", id: "language", lang: next });
  button.textContent = LANGUAGES[next];
  button.addEventListener("click", () => chooseWords("language", next));
  return button;
}

// Says the zone in which times are written now.
function zoneButton() {
  const [now, next] = zone() === "kst" ? ["kst", "local"] : ["local", "kst"];
  const button = make("button", { type: "button", className: "quiet word", id: "zone" });
  button.textContent = now === "kst" ? ZONES.kst : say("button::local");
  const texts = { local: phrase("Times are those of this browser"), kst: phrase("Times are those of Korea (KST)") };
  button.title = say(texts[now]);
  button.addEventListener("click", () => chooseWords("zone", next));
  return button;
}

// A button that goes through its values; the first leaves no trace in the document.
function switchButton(name, values, usual, show) {
  const button = make("button", { type: "button", className: "quiet icon", id: name });
  const now = () => root.dataset[name] ?? usual;
  button.addEventListener("click", () => {
    const next = values[(values.indexOf(now()) + 1) % values.length];
    if (next === usual) delete root.dataset[name];
    else root.dataset[name] = next;
    storage.write(name, next === usual ? null : next);
    show(button, next);
    tellColours();
  });
  show(button, now());
  return button;
}

function make(tag, properties = {}) {
  return Object.assign(document.createElement(tag), properties);
}
