// The live board: follows tick.v1 for every issue and draws it once per frame.

const MAX_ROWS = 200;
const BACKOFF_MS = 500;
const BACKOFF_MOST_MS = 30_000;
const SILENT_HEARTBEATS = 2.5;
const DECIMALS = new Set(["price", "size"]);
const CLOSED_FOR_GOOD = new Set([1000, 1003, 1007, 1008, 1009]);

const issues = new Map(); // ISIN -> the newest item, with `fresh`, the window it came in
const firstPrices = new Map(); // ISIN -> price text first seen since the page was loaded
const totals = { trades: 0, rows: 0 };
const last = { window: null, changed: 0, trades: 0, lagMs: null };

let epoch = null;
let position = null; // where to resume: everything up to it has arrived
let clockSkewMs = 0;
let heartbeatMs = 5_000;
let attempt = 0;
let reconnectAfterMs = null;
let staleReason = null; // what the server says when no windows arrive
let watchdog = null;

const byId = (id) => document.getElementById(id);

// A price is decimal text: read as a number, 0.30 would turn into 0.3.
export function readMessage(text) {
  return JSON.parse(text, (key, value, context) =>
    DECIMALS.has(key) && context?.source !== undefined ? context.source : value,
  );
}

export function backoffMs(tries, random = Math.random()) {
  return random * Math.min(BACKOFF_MOST_MS, BACKOFF_MS * 2 ** tries);
}

function connect() {
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(`${scheme}//${location.host}/v1/stream`, "tick.v1");
  showState("connecting", "connecting");
  watch(socket);
  socket.onopen = () => {
    const message = { op: "subscribe", id: 1, keys: ["*"] };
    if (position !== null) message.since = position;
    socket.send(JSON.stringify(message));
  };
  socket.onmessage = (event) => {
    watch(socket);
    take(readMessage(event.data));
  };
  socket.onclose = (event) => {
    if (socket.isAbandoned) return;
    reconnect(event.code);
  };
}

function reconnect(code) {
  clearTimeout(watchdog);
  if (CLOSED_FOR_GOOD.has(code) || (code >= 4500 && code < 5000)) {
    showState("closed", `closed (${code})`);
    return;
  }
  const delayMs = reconnectAfterMs ?? backoffMs(attempt);
  reconnectAfterMs = null;
  attempt += 1;
  showState("closed", `reconnecting in ${(delayMs / 1000).toFixed(1)} s`);
  setTimeout(connect, delayMs);
}

// Browsers do not show protocol pings: silence is the only sign of a dead connection.
function watch(socket) {
  clearTimeout(watchdog);
  watchdog = setTimeout(() => {
    socket.isAbandoned = true;
    socket.close();
    reconnect(null);
  }, SILENT_HEARTBEATS * heartbeatMs);
}

function take(message) {
  switch (message.type) {
    case "welcome":
      heartbeatMs = message.heartbeat_ms;
      staleReason = null;
      clockSkewMs = message.server_time / 1000 - Date.now();
      break;
    case "ack":
      attempt = 0;
      if (!message.resumed) issues.clear();
      showFeed();
      break;
    case "snapshot":
      enter(message.epoch);
      message.data.forEach((item) => put(item, null));
      if (message.final) hold(message);
      break;
    case "update":
      enter(message.epoch);
      update(message);
      hold(message);
      break;
    case "heartbeat":
      hold(message);
      last.window = message.window;
      break;
    case "status":
      staleReason = message.feed === "live" ? null : message.message;
      showFeed();
      break;
    case "notice":
      reconnectAfterMs = message.reconnect_after_ms;
      break;
  }
  requestPaint();
}

// Another epoch is another truth: nothing of the old one may stay on the page.
function enter(newEpoch) {
  if (newEpoch !== epoch) issues.clear();
  epoch = newEpoch;
}

function hold(message) {
  if (message.epoch === null) return;
  position = { epoch: message.epoch, offset: message.offset };
}

function update(message) {
  const trades = message.data.reduce((sum, item) => sum + item.trades, 0);
  message.data.forEach((item) => put(item, message.window));
  totals.trades += trades;
  totals.rows += message.data.length;
  last.window = message.window;
  last.changed = message.data.length;
  last.trades = trades;
  last.lagMs = Date.now() + clockSkewMs - message.window;
}

function put(item, window) {
  if (!firstPrices.has(item.isin)) firstPrices.set(item.isin, item.price);
  item.fresh = window;
  issues.set(item.isin, item);
}

function showFeed() {
  if (staleReason === null) showState("live", "live");
  else showState("stale", staleReason);
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

if (typeof document !== "undefined") {
  byId("search").addEventListener("input", requestPaint);
  byId("order").addEventListener("change", requestPaint);
  byId("tools").addEventListener("submit", (event) => event.preventDefault());
  connect();
}
