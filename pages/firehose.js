// Firehose beside calm: each trade of the log as it comes, beside the same instruments in the
// stream. This file holds what changes and both lines to the gateway; firehose/page.js
// draws it.

import { h, render } from "preact";

import { CONNECTED, Line } from "./board/line.js";
import { ActiveInstruments } from "./firehose/active_instruments.js";
import { follow } from "./firehose/events.js";
import { Meter } from "./firehose/figures.js";
import { Hose, Page } from "./firehose/page.js";
import { language, phrase, say } from "./language.js";
import { token as operatorToken } from "./operations/api.js";
import { authorization, createShell, getNews, onWords, streamUrl, token } from "./shell.js";
import { TickClient } from "./tick.js";
import { zone } from "./times.js";

const RATE = 1_000; // trades a second to be shown, if the gateway allows it
const PLACES = 12;
const LINES = 14;
const WINDOWS = 13;
const DRAWN_EVERY_MS = 50;
const FIGURES_EVERY_MS = 500;
const CHOSEN_EVERY_MS = 5_000;
const MOST_PENDING = 500;

const shell = createShell({ page: "firehose", withPriceColours: true, onRetry: () => ticks.reconnect() });
const line = new Line();

const view = {
  hose: new Meter(performance.now()),
  calm: new Meter(performance.now()),
  isins: [],
  instruments: new Map(),
  hosePrices: new Map(),
  calmPrices: new Map(),
  lines: [],
  windows: [],
  get windowMs() {
    return line.windowMs;
  },
  problem: phrase("Waiting for the log."),
  isTokenWanted: false,
  // Whoever wants no motion starts it by hand.
  isPaused: matchMedia("(prefers-reduced-motion: reduce)").matches,
  get nowMs() {
    return performance.now();
  },
  togglePause() {
    view.isPaused = !view.isPaused;
    pending.length = 0;
    draw();
  },
  retry: () => hose.now(),
};

const active = new ActiveInstruments(PLACES);
const pending = []; // trades that are not drawn yet
let isFollowing = false; // what the stream brings is counted while the firehose comes, too
let drawnMs = 0;
let chosenMs = -Infinity;
let draws = 0;

// The left side.

const hose = follow(`v1/firehose?rate=${RATE}`, {
  headers() {
    const held = operatorToken.get();
    return held === null ? authorization() : { Authorization: `Bearer ${held}` };
  },
  onMessage(message) {
    if (message.type === "problem") return tellProblem(message.detail);
    if (message.type !== "trades") return;
    tellProblem(null);
    isFollowing = true;
    take(message);
  },
  onProblem(text, status) {
    isFollowing = false;
    view.isTokenWanted = status === 401 && token === undefined;
    tellProblem(text);
  },
});

function take({ appended, shown, left_out: leftOut, unread, bytes, data }) {
  const decoded = data.filter(({ isin }) => isin !== undefined).length;
  view.hose.add(view.nowMs, { trades: appended, shown, leftOut, unread, bytes, decoded, undecoded: data.length - decoded });
  for (const { isin } of data) if (isin !== undefined) active.add(isin);
  if (view.isPaused) return;
  pending.push(...data);
  if (pending.length > MOST_PENDING) pending.splice(0, pending.length - MOST_PENDING);
}

function tellProblem(text) {
  const sentence = text === null || /[.!?]$/.test(text) ? text : `${text}.`;
  if (sentence === view.problem) return;
  view.problem = sentence && sentence[0].toUpperCase() + sentence.slice(1);
  if (text === null) view.isTokenWanted = false;
  draw();
}

// Trades come ten times a second, many at once: half of those that wait are drawn at a time.
function pour(nowMs) {
  requestAnimationFrame(pour);
  if (nowMs - drawnMs < DRAWN_EVERY_MS || !pending.length || view.isPaused) return;
  drawnMs = nowMs;
  const trades = pending.splice(0, Math.ceil(pending.length / 2));
  const touched = new Set();
  draws += 1;
  for (const { isin, price } of trades) {
    if (isin === undefined) continue;
    view.hosePrices.set(isin, { price, seq: draws });
    if (view.isins.includes(isin)) touched.add(isin);
  }
  const newest = trades.slice(-LINES).reverse();
  view.lines = [...newest, ...view.lines].slice(0, LINES);
  view.hose.add(nowMs, { changes: newest.length + touched.size });
  drawHose();
}

function drawHose() {
  render(h(Hose, { view }), document.getElementById("hose"));
}

// The right side.

const ticks = new TickClient(streamUrl(), {
  token,
  onState(kind, text) {
    line.link = { kind, text };
    judgeLine();
    if (CONNECTED.has(kind)) askForNames();
  },
  onReset: () => view.calmPrices.clear(),
  onMessage: heard,
});
ticks.subscribe(["*"], (item) => {
  view.calmPrices.set(item.isin, { price: item.price, seq: item.seq });
});

function heard(message, tookMs, bytes) {
  if (!line.hear(message, ticks.clockSkewMs)) return;
  if (message.type !== "update") return;
  const rows = message.data.length;
  const trades = message.data.reduce((sum, item) => sum + item.trades, 0);
  for (const { isin, trades: count } of message.data) if (!view.hose.total("decoded")) active.add(isin, count);
  const { window } = message;
  view.windows = [{ window, rows, trades, bytes }, ...view.windows].slice(0, WINDOWS);
  if (!isFollowing) return;
  const changed = message.data.filter(({ isin }) => view.isins.includes(isin)).length;
  view.calm.add(view.nowMs, { rows, bytes, changes: changed + 1 });
  draw();
}

function judgeLine() {
  const { kind, ...about } = line.judge(ticks.retryAtMs);
  shell.setState(kind, about);
}

let areNamesAskedFor = false;

async function askForNames() {
  if (areNamesAskedFor) return;
  areNamesAskedFor = true;
  try {
    const { json } = await getNews("v1/instruments");
    view.instruments = new Map(json.data.map((instrument) => [instrument.isin, instrument]));
    draw();
  } catch {
    areNamesAskedFor = false;
  }
}

// Both.

function draw() {
  const { nowMs } = view;
  if (nowMs - chosenMs > CHOSEN_EVERY_MS || view.isins.length < PLACES) {
    chosenMs = nowMs;
    view.isins = [...active.choose(nowMs)];
  }
  // In other words it is another page: everything is drawn anew.
  render(h(Page, { key: `${language()} ${zone()}`, view }), document.getElementById("firehose"));
  document.title = say("tickthrottle: firehose beside calm");
  drawHose();
}

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input, textarea, select");
  if (event.key !== "p" || event.ctrlKey || event.metaKey || event.altKey || isTyping) return;
  view.togglePause();
});

// What comes while the page is hidden is counted on neither side.
document.addEventListener("visibilitychange", () => document.hidden && (isFollowing = false));

setInterval(() => {
  judgeLine();
  if (!document.hidden) draw();
}, FIGURES_EVERY_MS);
onWords(() => {
  judgeLine();
  draw();
});
draw();
requestAnimationFrame(pour);
