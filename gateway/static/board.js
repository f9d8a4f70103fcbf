// The live board: every issue of the stream, drawn once per frame.

import { TickClient } from "./tick.js";

const MAX_ROWS = 200;

const issues = new Map(); // ISIN -> the newest item, with `fresh`, the window it came in
const firstPrices = new Map(); // ISIN -> price text first seen since the page was loaded
const totals = { trades: 0, rows: 0 };
const last = { window: null, counted: null, changed: 0, trades: 0, lagMs: null };

const byId = (id) => document.getElementById(id);

function connect() {
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  // Browsers send this part of the address to no server.
  const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? undefined;
  const ticks = new TickClient(`${scheme}//${location.host}/v1/stream`, {
    token,
    onState: showState,
    onReset: () => issues.clear(),
    onMessage: (message) => {
      if (message.type === "update") count(message, ticks.clockSkewMs);
      if (message.type === "heartbeat") last.window = message.window;
      requestPaint();
    },
  });
  ticks.subscribe(["*"], put);
}

function put(item, window) {
  if (!firstPrices.has(item.isin)) firstPrices.set(item.isin, item.price);
  issues.set(item.isin, { ...item, fresh: window });
  requestPaint();
}

function count(message, clockSkewMs) {
  const trades = message.data.reduce((sum, item) => sum + item.trades, 0);
  totals.trades += trades;
  totals.rows += message.data.length;
  // A window may come in parts, one from each of several jobs.
  const isPart = message.window === last.counted;
  last.changed = message.data.length + (isPart ? last.changed : 0);
  last.trades = trades + (isPart ? last.trades : 0);
  last.window = last.counted = message.window;
  last.lagMs = Date.now() + clockSkewMs - message.window;
}

function showState(kind, text) {
  const state = byId("state");
  state.className = `state ${kind}`;
  state.textContent = text;
}

let isPaintDue = false;

function requestPaint() {
  if (isPaintDue) return;
  isPaintDue = true;
  requestAnimationFrame(() => {
    isPaintDue = false;
    paint();
  });
}

const ORDERS = {
  recent: (a, b) => b.time - a.time || (a.isin < b.isin ? -1 : 1),
  trades: (a, b) => inWindow(b) - inWindow(a) || ORDERS.recent(a, b),
  isin: (a, b) => (a.isin < b.isin ? -1 : 1),
};

// Only what came in the newest window counts; an older row's trades are history.
function inWindow(item) {
  return item.fresh === last.window ? item.trades : 0;
}

function paint() {
  const wanted = byId("search").value.trim().toUpperCase();
  const found = [...issues.values()].filter((item) => item.isin.includes(wanted));
  found.sort(ORDERS[byId("order").value]);
  byId("rows").replaceChildren(...found.slice(0, MAX_ROWS).map(row));
  byId("empty").hidden = found.length > 0;
  byId("empty").textContent = issues.size ? "Nothing matches." : "Waiting for the first window.";
  byId("shown").textContent =
    found.length > MAX_ROWS ? `showing ${MAX_ROWS} of ${found.length}` : "";
  byId("issues").textContent = issues.size.toLocaleString();
  byId("changed").textContent = last.changed.toLocaleString();
  byId("trades").textContent = last.trades.toLocaleString();
  byId("window").textContent = last.window === null ? "–" : clock(last.window, false);
  byId("lag").textContent = last.lagMs === null ? "–" : `${Math.round(last.lagMs)} ms`;
  byId("ratio").textContent = totals.rows
    ? `${totals.trades.toLocaleString()} trades in ${totals.rows.toLocaleString()} rows`
    : "–";
}

function row(item) {
  const line = document.createElement("tr");
  if (item.fresh !== null && item.fresh === last.window && !item.isShown) {
    line.className = "fresh";
    item.isShown = true;
  }
  const { text, percent, kind } = change(item);
  const changed = cell(text, `number ${kind}`);
  changed.append(span(percent, "percent"));
  line.append(
    cell(item.isin, "isin"),
    cell(item.price, `number price ${kind}`),
    changed,
    cell(item.size, "number"),
    cell(item.trades || "", "number"),
    cell(clock(item.time / 1000, true), "number"),
  );
  return line;
}

const cell = (text, className) => make("td", text, className);
const span = (text, className) => make("span", text, className);

function make(tag, text, className) {
  const element = document.createElement(tag);
  element.className = className;
  element.textContent = text;
  return element;
}

// The difference is for the eye only, so binary arithmetic is good enough here.
function change(item) {
  const first = Number(firstPrices.get(item.isin));
  const difference = Number(item.price) - first;
  if (!difference) return { text: "–", percent: "", kind: "" };
  const places = (String(item.price).split(".")[1] ?? "").length;
  const percent = ((Math.abs(difference) / first) * 100).toFixed(2);
  const arrow = difference > 0 ? "▲" : "▼";
  return {
    text: `${arrow} ${Math.abs(difference).toFixed(places)}`,
    percent: ` (${percent}%)`,
    kind: difference > 0 ? "up" : "down",
  };
}

function clock(timeMs, withMilliseconds) {
  const time = new Date(timeMs);
  const pad = (number, width = 2) => String(number).padStart(width, "0");
  const text = [time.getHours(), time.getMinutes(), time.getSeconds()].map((n) => pad(n)).join(":");
  return withMilliseconds ? `${text}.${pad(time.getMilliseconds(), 3)}` : text;
}

byId("search").addEventListener("input", requestPaint);
byId("order").addEventListener("change", requestPaint);
byId("tools").addEventListener("submit", (event) => event.preventDefault());
connect();
