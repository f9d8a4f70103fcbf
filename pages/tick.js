// A client of tick.v1 for web pages, in one file without dependencies.
//
//   import { TickClient } from "/static/tick.js";
//   const ticks = new TickClient("wss://prices.example/v1/stream");
//   const stop = ticks.subscribe(["KR7005930003"], (item) => show(item.price));
//
// The callback gets an instrument's newest item, at most once per animation frame: first
// what is known, then every change. An item stands for all trades since the one before
// it: `traded(item)` says their sums, and `item.day` what was traded since the day began:
// {start, trades, volume, value, high, low, open}, not there where nobody knows it. A lost
// connection is made again, after a random delay, and resumes where it was.
// docs/protocol.md says what the messages mean.

const BACKOFF_MS = 500;
const BACKOFF_MOST_MS = 30_000;
const PROBE_MS = 5_000;
const TOO_MANY_MESSAGES_MS = 30_000;
const SILENT_HEARTBEATS = 2.5;
const SILENT_WINDOWS = 3;
const SILENCE_SLACK_MS = 1_500;
const DECIMALS = /"(price|size|volume|value|high|low|open(?=":[\d.]+}}))"(\s*:\s*)(-?\d[\d.eE+-]*)/g;
// (`open` is that of a day: an item may have one of its own, which is not the last field.)
// A decimal of an item that is more than up to 15 digits without a needless zero.
const UNSAFE = /"(?:price|size|volume|value|high|low|open(?=":[\d.]+}}))"(?!:-?(?:[1-9]\d{0,14}|(?=[\d.]{3,16}[,}])\d+\.(?!0{6})\d*[1-9])[,}])/;
// Rows by position have numbers between brackets and commas: the same of those.
const UNSAFE_ROW = /[[,](?!-?(?:0|[1-9]\d{0,14}|(?=[\d.]{3,16}[,\]])\d+\.(?!0{6})\d*[1-9])[,\]])-?\d/;
const ROW_NUMBERS = /"(?:[^"\\]|\\.)*"|([[,])(-?\d[\d.]*)(?=[,\]])/g;
const BEFORE = ["age", "time", "seq", "price", "size"]; // of the order of an item's fields
const BEHIND = ["further", "updates", "corrects", "revision", "trades", "volume", "value", "high", "low", "day"];
const TEXTS = new Set(["price", "size", "volume", "value", "high", "low"]);
const OF_DAYS = ["price", "size", ...BEHIND.slice(-6)];
const DAY = ["start", "trades", "volume", "value", "high", "low", "open"];
const ALL_FIELDS = ["*"];
const HAVE_ROWS = new Set(["snapshot", "update"]); // what others call `data` is unknown
const GROUPS = '"groups":[';
const GROUP_DECIMALS = /"(volume|value|mean_change_pct)":(-?\d[\d.]*)/g;
const DATA = ',"data":[';
const BAR_DECIMALS = /"(open|high|low|close|volume|value|vwap)"(:)(-?\d[\d.eE+-]*)/g;
const STATUS_DECIMALS = /"(expected_price|expected_size|lower|upper|price)"(:)(-?\d[\d.]*)/g;
const BANDS = "price_bands";
const TRADES = "trades:";
const BARS = "bars:";
const MOST_BARS = 512; // of an instrument and interval that are remembered
const FINAL_CODES = new Set([1000, 1003, 1007, 1008, 1009]);
const EVERYTHING = "*";
const OF_LISTS = new Set(["key_limit", "bad_request"]); // some keys of the list may be accepted
const MOST_REFUSALS = 15; // in a row; after 20 a gateway closes for good
const NAMED = 10; // keys in a line of the console

// "KR7005930003@NXT", a venue of an instrument, is none of all instruments.
const isInstrument = (key) => !key.includes("@");

const CHAINED = new Set(["snapshot", "update", "heartbeat"]); // may say something of the chain
const GROUP = "group:";
const ALL_GROUPS = "group:*";
const SHORT = 15; // digits that a binary number has for sure
const PLACES = 36; // behind the point of a sum: a price and a size have 18 each

// A price is decimal text: read as a number, 0.30 would turn into 0.3. Within a string
// every quote has a backslash before it, so only fields are found; a function called for
// each value of the whole board would take five times as long. Groups stand before the
// data, whose items may have fields of any name.
//
// Where all of an item's decimals are numbers that come back as they were written, as they
// mostly are, they become text after they were read: that takes half the time, and less
// garbage, than a copy of the message with quotes in it.
export function readMessage(text) {
  if (text.startsWith('{"type":"bars"')) return readBars(text);
  if (text.startsWith('{"type":"trades"')) return JSON.parse(text.replace(DECIMALS, '"$1"$2"$3"'));
  if (text.startsWith('{"type":"statuses"')) return JSON.parse(text.replace(STATUS_DECIMALS, '"$1"$2"$3"'));
  const at = Math.max(0, text.indexOf(DATA));
  const head = text.slice(0, at);
  if (at && text[at + DATA.length] === "[") return readRows(text, at);
  if (at && !head.includes(GROUPS) && !UNSAFE.test(text)) return withTexts(JSON.parse(text));
  return JSON.parse(head.replace(GROUP_DECIMALS, '"$1":"$2"') + text.slice(at).replace(DECIMALS, '"$1"$2"$3"'));
}

// Rows by position stay arrays: `Positions` makes items of them.
function readRows(text, at) {
  const tail = text.slice(at);
  const head = text.slice(0, at).replace(GROUP_DECIMALS, '"$1":"$2"');
  const quoted = (all, before, number) => (number === undefined ? all : `${before}"\\u0000${number}"`);
  if (UNSAFE_ROW.test(tail)) return JSON.parse(head + tail.replace(ROW_NUMBERS, quoted));
  // A copy of the message would be a sixth of a window's garbage.
  return JSON.parse(head.length === at ? text : head + tail);
}

const isMarked = (value) => typeof value === "string" && /^\0-?\d[\d.]*$/.test(value);
const asText = (value) => (isMarked(value) ? value.slice(1) : String(value));
const asNumber = (value) => (isMarked(value) ? Number(value.slice(1)) : value);

// Which fields the rows of a connection have, and which instrument a number is.
class Positions {
  constructor() {
    this._fields = null; // null: rows are objects
    this._names = new Map();
  }

  // Note what a message says of rows; make items of those that it has.
  _read(message) {
    if (message.type === "ack" && message.op === "subscribe") this._fields = message.fields ? inOrder(message.fields) : null;
    for (const [number, isin] of Object.entries(message.names ?? {})) this._names.set(Number(number), isin);
    if (this._fields === null || !HAVE_ROWS.has(message.type)) return;
    const windowUs = (message.window ?? 0) * 1000;
    message.data = message.data.map((row) => this._item(row, windowUs));
  }

  _item(row, windowUs) {
    const item = { isin: this._names.get(asNumber(row[0])) };
    for (const { name, at, isText } of this._fields) {
      const value = row[at] ?? null;
      if (value === null) continue;
      if (name === "age") item.time = windowUs - asNumber(value);
      else if (name === "further") Object.assign(item, value);
      else if (name === "day") item.day = dayOf(value);
      else item[name] = isText ? asText(value) : asNumber(value);
    }
    return item;
  }
}

// Fields with their places in a row, as items have them; further fields as the row has them.
function inOrder(fields) {
  const of = (names) => names.filter((name) => fields.includes(name));
  const further = fields.filter((name) => !BEFORE.includes(name) && !BEHIND.includes(name));
  return [...of(BEFORE), ...further, ...of(BEHIND)].map((name) => ({ name, at: fields.indexOf(name) + 1, isText: TEXTS.has(name) }));
}

function dayOf(values) {
  const day = {};
  DAY.forEach((name, at) => {
    if (values[at] != null) day[name] = at < 2 ? asNumber(values[at]) : asText(values[at]);
  });
  return day;
}

// What to ask a gateway for, to get these fields of items. Every item has `trades`, and a day
// is kept with all that adds to it.
function wireFields(fields) {
  if (fields === undefined) return ALL_FIELDS;
  const all = [...fields, ...(fields.includes("day") ? OF_DAYS : []), "trades"];
  const names = all.filter((name) => name !== "isin").map((name) => (name === "time" ? "age" : name));
  return [...new Set(names)];
}

function withTexts(message) {
  for (const item of message.data) {
    if (typeof item.price === "number") item.price = String(item.price);
    if (typeof item.size === "number") item.size = String(item.size);
    if (item.volume !== undefined) sumsToTexts(item);
    if (item.day !== undefined) sumsToTexts(item.day);
  }
  return message;
}

function sumsToTexts(sums) {
  if (typeof sums.volume === "number") sums.volume = String(sums.volume);
  if (typeof sums.value === "number") sums.value = String(sums.value);
  if (typeof sums.high === "number") sums.high = String(sums.high);
  if (typeof sums.low === "number") sums.low = String(sums.low);
  if (typeof sums.open === "number") sums.open = String(sums.open);
}

// The same of an answer with bars.
export function readBars(text) {
  return JSON.parse(text.replace(BAR_DECIMALS, '"$1"$2"$3"'));
}

// The sums of the trades that an item stands for, {trades, volume, value, high, low}, all
// but the first as decimal text; null if it stands for none, or nobody knows them. An
// item of its own trade alone says them by `price` and `size`; any other one in full,
// without `high` and `low` if none of its trades counts for the range.
export function traded({ trades, price, size, volume, value, high, low }) {
  if (volume !== undefined) return { trades, volume, value, high, low };
  if (trades !== 1 || price === undefined || size === undefined) return null;
  return { trades, volume: size, value: times(price, size), high: price, low: price };
}

// The sums of the trades of two; null if those of one are not known.
export function addTraded(one, other) {
  if (one === null || other === null) return null;
  const wide = one.high === undefined ? other : one; // has a range if one of them has
  const more = other.high === undefined ? wide : other;
  const high = wide.high && (isLess(wide.high, more.high) ? more.high : wide.high);
  const low = wide.low && (isLess(more.low, wide.low) ? more.low : wide.low);
  const sums = { volume: plus(one.volume, other.volume), value: plus(one.value, other.value) };
  return { trades: one.trades + other.trades, ...sums, high, low };
}

// The day so far as of an item, given that of the item before; undefined where nobody
// knows it. One that the item says takes the place of all before, any other item adds.
export function dayAfter(item, before) {
  if (item.day !== undefined || before === undefined) return item.day;
  const more = traded(item);
  if (more === null) return undefined;
  const { trades, volume, value, high, low } = addTraded(before, more);
  const day = { ...before, trades, volume, value };
  if (high !== undefined) day.high = high;
  if (low !== undefined) day.low = low;
  return day;
}

// Sums of a whole board come with every window, and nearly all of its numbers are whole
// and short: what a binary number has exactly is added as one, in a tenth of the time.
const isWhole = (text) => text.length <= SHORT && !text.includes(".");

function plus(one, other) {
  if (isWhole(one) && isWhole(other)) return String(Number(one) + Number(other));
  return decimalText(units(one) + units(other));
}

function times(one, other) {
  const product = Number(one) * Number(other);
  if (isWhole(one) && isWhole(other) && Number.isSafeInteger(product)) return String(product);
  return decimalText((units(one) * units(other)) / 10n ** BigInt(PLACES));
}

function isLess(one, other) {
  if (one.length <= SHORT && other.length <= SHORT) return Number(one) < Number(other);
  return units(one) < units(other);
}

// How many of 10^-36 a decimal is: no sum is ever a binary fraction.
function units(text) {
  const [whole, rest = ""] = text.split(".");
  return BigInt(whole + rest.padEnd(PLACES, "0"));
}

function decimalText(number) {
  const digits = number.toString().padStart(PLACES + 1, "0");
  const rest = digits.slice(-PLACES).replace(/0+$/, "");
  return digits.slice(0, -PLACES) + (rest && `.${rest}`);
}

// An item that stands for other trades than it said: so many, and their sums if known.
function standingFor(item, trades, sums) {
  const { volume, value, high, low, ...trade } = item;
  return { ...trade, trades, ...sums };
}

// The newer of two items, standing for the trades of both. One that stands for none adds
// nothing.
function joined(item, before) {
  if (!before.trades) return item;
  const sums = item.trades ? addTraded(traded(item), traded(before)) : traded(before);
  return standingFor(item, item.trades + before.trades, sums);
}

export function backoffMs(attempt, random = Math.random()) {
  return random * Math.min(BACKOFF_MOST_MS, BACKOFF_MS * 2 ** attempt);
}

export function isFinal(code) {
  return FINAL_CODES.has(code) || (code >= 4500 && code < 5000);
}

// Which of two rows of an instrument is older, within an epoch: a row tells of the order
// (trade_order.py) time and seq, and how often a trade that was shown was taken back.
export function isOlder(item, known) {
  const taken = (item.revision ?? 0) - (known.revision ?? 0);
  if (taken) return taken < 0;
  return item.time < known.time || (item.time === known.time && item.seq < known.seq);
}

// Between two revisions a bar only gains trades, and it is closed once.
export function isOlderBar(bar, known) {
  const step =
    bar.revision - known.revision || bar.trades - known.trades || bar.closed - known.closed;
  return step < 0;
}

// What keys of a subscription stand for: BARS, TRADES, or EVERYTHING for items.
function kindOf([first = EVERYTHING]) {
  return [BARS, TRADES].find((kind) => first.startsWith(kind)) ?? EVERYTHING;
}

// Keys, one or many, as a list.
function asList(keys) {
  const list = typeof keys === "string" ? [keys] : [...keys];
  const odd = list.find((key) => typeof key !== "string" || key === "");
  if (odd !== undefined) throw new TypeError(`key ${String(odd)}: must be text`);
  return list;
}

// What is said of keys of which nothing has come.
function silenceOf(keys, hasBegun) {
  const further = keys.length > NAMED ? ` and ${keys.length - NAMED} more` : "";
  const why = hasBegun
    ? "not traded since the stream began; the next trade will be told"
    : "the stream has not begun; its first window will be told";
  return `nothing yet of ${keys.slice(0, NAMED).join(", ")}${further}: ${why}`;
}

// Call what is not ours. What it throws is told as an event listener's, and stops nobody else.
function safely(call) {
  try {
    call();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}

// The origin of this page if the gateway of a stream answers, and not to it ("null" of one that
// has none): null if all is well, or nobody answers, or there is no page. A browser tells a page that a stream could not
// be opened, and never why.
async function refusedOrigin(url) {
  const page = globalThis.location;
  if (page === undefined) return null;
  const asked = new URL("version", new URL(url, page.href).href.replace(/^ws/, "http"));
  if (asked.host === page.host) return null;
  const ask = (mode) => fetch(asked, { mode, cache: "no-store", signal: AbortSignal.timeout(PROBE_MS) });
  try {
    await ask("cors");
  } catch {
    return ask("no-cors").then(() => globalThis.origin, () => null);
  }
  return null;
}

export class TickClient {
  // Connects with the first subscribe. Options, functions all but the first three:
  //   token                 what the gateway asks for before it gives prices: text, or a
  //                         function that returns a fresh one, or a promise of it
  //   minIntervalMs         at most one update per so many milliseconds, each with the newest
  //                         values; the gateway grants whole windows, a minute at most
  //   fields                names of the fields that items have beside `isin` and `trades`; all
  //                         without it. Fewer are fewer bytes: rows come by position. Without
  //                         `time` and `seq` an older item is not known as one, and without
  //                         `volume`, `value`, `high` and `low` nobody knows the sums of several
  //                         trades
  //   verify                check the chain of windows (docs/inspecting.md); items need all fields
  //                         then. It loads tick-chain.js from beside this file
  //   onChain(verdict)      what that says of each step: {state, epoch, after, offset, hasRows,
  //                         reason}; without it the console is warned of a break
  //   onState(state, text)  connecting, live, stale (no windows arrive, or nothing
  //                         at all for three of them), starting
  //                         (they will, the job that makes them starts), offline (a new
  //                         connection will be made at retryAtMs; the text says it if the
  //                         gateway does not list this page's origin), closed (none will)
  //   onMessage(message, tookMs, size)  every message of the server, after it was taken
  //                         in, how long that took, and of how many characters it was
  //   onReset()             another epoch: everything known before is void
  //   onRejected(rejected)  keys that were not accepted, or that a newer token takes:
  //                         [{key, code, message}]
  //   onNothing(keys)       keys of instruments, markets or sectors that have no item a window
  //                         after their snapshot, each key once; without it the console is
  //                         warned of them
  //   onStatus(status)      an instrument that is followed is halted, in an auction, trades
  //                         again: first what is current, then each at once; prices are
  //                         text, `missed` is how many are missing before it (null: unknown)
  //   onBarsMissed()        bars that were told before may have been amended meanwhile, or
  //                         some are missing: REST has them
  constructor(url, options = {}) {
    this.items = new Map(); // ISIN -> newest item
    this.groups = new Map(); // key of a group -> its newest figures
    this.statuses = new Map(); // ISIN -> its current statuses, one of each venue and kind
    this._statusEpoch = null;
    this._statusOrders = new Map(); // which of a slot was told last
    this._statusMissed = this._statusMissedBefore = 0;
    this._statusNumber = 0; // the greatest that was told
    this.position = null; // everything up to it has arrived
    this.clockSkewMs = 0; // the server's clock, less this one
    this.windowMs = 2_000; // the length of a window
    this.lastWindow = null; // the end of the newest window that has arrived, also an empty one
    this.retryAtMs = null; // when the next try is due, by Date.now(); null: none is waited for
    this._url = url;
    this._options = options;
    this._listeners = new Map(); // key -> set of callbacks
    this._isins = new Map(); // key by a code -> key by the ISIN, as the gateway has told
    this._codes = new Map(); // the other way round
    this.members = new Map(); // market or sector -> its ISINs
    this._followedBy = new Map(); // ISIN -> the markets and sectors it is followed by
    this._renames = new Map(); // what is called otherwise since it was asked for
    this._instruments = null; // names the instrument table that says so
    this._changed = new Map(); // ISIN -> window, of what no callback has seen
    this._wanted = new Set(); // keys to ask for
    this._asked = new Map(); // id of a message -> keys of one kind, until it is answered
    this._apart = []; // parts of lists that were refused, to be asked for one by one
    this._refusals = 0; // so many came in a row
    this._rejected = new Map(); // key that is listened to and not held -> why not
    this._lookedAt = new Set(); // keys whose first snapshot is complete
    this._isLookDue = false;
    this._socket = null;
    this._epoch = null;
    this._heartbeatMs = 5_000;
    this._attempt = 0;
    this._isClosed = false; // by close()
    this._calm = options.minIntervalMs ? { min_interval_ms: options.minIntervalMs } : {};
    if (options.verify && options.fields) throw new TypeError("fields: verify needs all of them: leave fields out");
    if (options.verify && !globalThis.crypto?.subtle) {
      throw new TypeError("verify: needs a page by https, or of this machine: browsers hash nowhere else");
    }
    this._fields = options.verify ? undefined : wireFields(options.fields);
    this._chain = null; // what checks it, once it is loaded
    this._checked = options.verify ? this._loadChain() : null; // what was to be checked is
    this._isPart = false; // a gateway of one market
    this._positions = new Positions();
    this._hasOpened = false; // this client, any connection
    this._outsider = ""; // why it could not, if a gateway does not know the page
    this._ids = 0;
    this._ended = new AbortController();
    this.barPosition = null; // every bar up to it has arrived
    this._barListeners = new Map(); // key of bars -> set of callbacks
    this._barLast = new Map(); // key -> how many bars are wanted of it
    this._bars = new Map(); // "1m:ISIN" -> map of start -> newest state
    this._barEpoch = null;
    this._tradeListeners = new Map(); // "trades:ISIN", or as it was given -> callbacks
    this._dropped = new Map(); // as _asked, of what is held no longer
    this._shown = null; // the message with the newest token
    this._tradesBegun = new Set(); // ISINs of which some have come
    this._tradesLost = new Set(); // those before a connection was lost
    this._isBarSnapshotDue = this._isBarReturn = false;
  }

  // Have a callback called for a key, or several (ISINs, codes of the instrument table,
  // "market:KOSPI", "sector:…", or "*"); returns a function that ends it. A market or sector
  // stands for the instruments that the table says, while that changes, too. Groups
  // ("group:market:KOSPI", "group:sector:…", "group:*") are the figures of a market or
  // sector, once per window: volume, value and mean_change_pct are text.
  //
  // An item that was known before stands for no trades (`trades` is 0, `window` null), so
  // the trades of all items that a callback gets are those since it was subscribed. What a
  // callback throws is reported as an uncaught error, and keeps nothing from the others.
  subscribe(keys, callback) {
    this._checkCall(callback);
    const list = asList(keys);
    // A gateway sends a client away that asks for nothing.
    if (!list.length) return () => {};
    for (const key of list) {
      if (this._isUnheld(this._listeners, key)) this._wanted.add(key);
      if (!this._listeners.has(key)) this._listeners.set(key, new Set());
      this._listeners.get(key).add(callback);
      const isins = this.members.get(key) ?? [this._isin(key)];
      const known = key === EVERYTHING ? [...this.items.keys()].filter(isInstrument) : isins;
      known.filter((isin) => this.items.has(isin)).forEach((isin) => this._change(isin, null));
      for (const group of this.groups.keys()) {
        if (key === group || key === ALL_GROUPS) this._change(group, null);
      }
    }
    if (this._wanted.size) this._isComplete = false;
    if (this._socket === null && this._timer === undefined) {
      this._listen();
      this._connect();
    } else {
      // Many calls in a row become one message.
      queueMicrotask(() => this._ask());
    }
    return () => this._unsubscribe(list, callback);
  }

  // Have a callback called for bars of an interval ("1m", "5m", "15m", "1h", "1d") of
  // instruments (ISINs, codes, or "*"); returns a function that ends it. First come the newest
  // `last` bars of each instrument, then each change: the open bar, the same closed, and
  // amended by late trades. No bar goes back.
  bars(interval, instruments, callback, { last = 1 } = {}) {
    this._checkCall(callback);
    const keys = [...new Set(asList(instruments))].map((instrument) => `${BARS}${interval}:${instrument}`);
    const wanted = keys.filter((key) => this._isUnheld(this._barListeners, key));
    for (const key of keys) {
      if (!this._barListeners.has(key)) this._barListeners.set(key, new Set());
      else this._barsOf(key).forEach((bar) => safely(() => callback(bar)));
      this._barListeners.get(key).add(callback);
      this._barLast.set(key, Math.max(last, this._barLast.get(key) ?? 1));
    }
    if (this._socket === null && this._timer === undefined) {
      this._listen();
      this._connect();
    } else {
      this._askBars(wanted);
    }
    return () => this._endBars(keys, callback);
  }

  // Have a callback called for every trade of up to five instruments (ISINs or codes), from
  // now on; returns a function that ends it. An entry has all fields of its trade, `number`,
  // which goes up by one, `window`, and `missed`: how many are missing before it, null where
  // nobody knows, as after a lost connection. One that takes a trade back has `cancels`.
  trades(instruments, callback) {
    this._checkCall(callback);
    const keys = [...new Set(asList(instruments))].map((instrument) => TRADES + instrument);
    const wanted = keys.filter((key) => this._isUnheld(this._tradeListeners, key));
    for (const key of keys) {
      if (!this._tradeListeners.has(key)) this._tradeListeners.set(key, new Set());
      this._tradeListeners.get(key).add(callback);
    }
    if (this._socket === null && this._timer === undefined) {
      this._listen();
      this._connect();
    } else {
      this._askTrades(wanted);
    }
    return () => this._endTrades(keys, callback);
  }

  // How old what is known may be: for so long no window has ended that has arrived; null
  // before the first.
  get ageMs() {
    return this.lastWindow === null ? null : Math.max(0, Date.now() + this.clockSkewMs - this.lastWindow);
  }

  // Try now, if the next try is waited for.
  reconnect() {
    if (this.retryAtMs === null) return;
    clearTimeout(this._timer);
    this._connect();
  }

  // End the connection for good: there is no subscribe after it.
  close() {
    this._isClosed = true;
    const socket = this._socket;
    this._end("closed");
    socket?.close(1000);
  }

  _checkCall(callback) {
    if (this._isClosed) throw new Error("this client was closed: make another one");
    if (typeof callback !== "function") throw new TypeError(`callback ${String(callback)}: must be a function`);
  }

  _endBars(keys, callback) {
    const dropped = [];
    for (const key of keys) {
      const callbacks = this._barListeners.get(key);
      if (!callbacks?.delete(callback) || callbacks.size) continue;
      this._barListeners.delete(key);
      this._barLast.delete(key);
      dropped.push(key);
    }
    this._drop(dropped);
    for (const name of [...this._bars.keys()]) {
      if (!this._barKeys(name).length) this._bars.delete(name);
    }
  }

  // Unsubscribe from keys that nobody listens to, by another name either.
  _drop(some) {
    const keys = some.filter((key) => !this._isHeld(key));
    keys.forEach((key) => this._rejected.delete(key));
    if (keys.includes(EVERYTHING)) this._checkNext(() => this._chain.follow(false));
    if (keys.length && this._isOpen) this._dropped.set(this._send({ op: "unsubscribe", keys }), keys);
  }

  _askBars(keys, since = null) {
    const groups = new Map();
    for (const key of keys) {
      const last = this._barLast.get(key);
      if (last !== undefined) groups.set(last, [...(groups.get(last) ?? []), key]);
    }
    for (const [last, some] of groups) {
      if (since === null) this.barPosition = null;
      this._subscribe(some, { last, ...(since === null ? {} : { bars_since: since }) });
    }
  }

  // The keys by which somebody listens to what is called "1m:ISIN".
  _barKeys(name) {
    const key = BARS + name;
    const all = `${BARS}${name.split(":")[0]}:${EVERYTHING}`;
    const keys = isInstrument(name) ? [key, all] : [key];
    return [...keys, this._codes.get(key)].filter((one) => this._barListeners.has(one));
  }

  _barsOf(key) {
    const [, interval, instrument] = this._isin(key).split(":");
    const found = [];
    for (const [name, bars] of this._bars) {
      const [itsInterval, isin] = name.split(":");
      const isIt = instrument === EVERYTHING ? isInstrument(isin) : instrument === isin;
      if (itsInterval !== interval || !isIt) continue;
      found.push(...[...bars.values()].sort((a, b) => a.start - b.start));
    }
    return found;
  }

  _takeBars(message) {
    let isMissed = false;
    if (message.final) {
      // One that nobody asked for is one after a hole.
      const isNew = this._isBarSnapshotDue && !this._isBarReturn;
      isMissed = !message.resumed && !isNew;
      this._isBarSnapshotDue = this._isBarReturn = false;
    }
    const isOther = message.epoch !== this._barEpoch && message.snapshot === true;
    this._barEpoch = message.epoch;
    message.bars.forEach((bar) => this._putBar(bar, isOther));
    const isWaiting = this._awaits(BARS) || this._isBarSnapshotDue || message.final === false;
    if (message.epoch !== null && !isWaiting) {
      this.barPosition = { epoch: message.epoch, sequence: message.sequence };
    }
    if (isMissed) this._say("onBarsMissed");
  }

  _askTrades(keys) {
    this._subscribe(keys.filter((key) => this._tradeListeners.has(key)));
  }

  _endTrades(keys, callback) {
    const isDropped = (key) => {
      const callbacks = this._tradeListeners.get(key);
      return callbacks?.delete(callback) && !callbacks.size && this._tradeListeners.delete(key);
    };
    const dropped = keys.filter(isDropped);
    this._drop(dropped);
  }

  _takeStatuses({ epoch, snapshot, resumed, missed, entries }) {
    if (epoch !== this._statusEpoch) this._statusOrders.clear();
    if (epoch !== this._statusEpoch) this._statusNumber = 0;
    this._statusEpoch = epoch;
    if (snapshot) this.statuses.clear();
    const before = resumed ? this._statusMissedBefore : this._statusMissed;
    this._statusMissed = missed === null || before === null ? null : before + missed;
    for (const entry of entries) {
      this._statusNumber = Math.max(this._statusNumber, entry.number);
      if (!this._putStatus(entry) && snapshot) continue;
      this._say("onStatus", { ...entry, missed: this._statusMissed });
      this._statusMissed = 0;
    }
  }

  // Returns whether it was not told before.
  _putStatus(entry) {
    const slotOf = ({ isin, venue, status }) => `${isin}/${venue ?? ""}/${status === BANDS}`;
    const slot = slotOf(entry);
    const isOlderThan = (one) => entry.time < one?.time || (entry.time === one?.time && entry.number < one.number);
    // A gateway that is behind the one before says what is current there.
    const held = this.statuses.get(entry.isin) ?? [];
    const others = held.filter((other) => slotOf(other) !== slot);
    if (!held.some((one) => !others.includes(one) && isOlderThan(one))) this.statuses.set(entry.isin, [...others, entry]);
    const told = this._statusOrders.get(slot);
    if (isOlderThan(told)) return false;
    this._statusOrders.set(slot, entry);
    return told?.number !== entry.number;
  }

  _takeTrades({ isin, number, missed, entries }) {
    let before = this._tradesLost.delete(isin) ? null : missed;
    this._tradesBegun.add(isin);
    const key = TRADES + isin;
    const names = [key, this._codes.get(key)];
    entries.forEach((entry, place) => {
      Object.assign(entry, { number: number + place, missed: before });
      before = 0;
      for (const name of names) {
        this._tradeListeners.get(name)?.forEach((callback) => safely(() => callback(entry)));
      }
    });
  }

  _putBar(bar, isForced) {
    const name = `${bar.interval}:${bar.isin}`;
    const keys = this._barKeys(name);
    if (!keys.length) return;
    if (!this._bars.has(name)) this._bars.set(name, new Map());
    const known = this._bars.get(name);
    const before = known.get(bar.start);
    if (before !== undefined && !isForced && isOlderBar(bar, before)) return;
    known.set(bar.start, bar);
    if (known.size > MOST_BARS) known.delete(Math.min(...known.keys()));
    keys.forEach((key) => this._barListeners.get(key)?.forEach((callback) => safely(() => callback(bar))));
  }

  _unsubscribe(keys, callback) {
    const dropped = [];
    for (const key of keys.map((name) => this._renamed(name))) {
      const callbacks = this._listeners.get(key);
      if (!callbacks?.delete(callback) || callbacks.size) continue;
      this._listeners.delete(key);
      this._wanted.delete(key);
      this._setMembers(key, []);
      dropped.push(key);
    }
    this._drop(dropped);
    this._forgetUnwatched();
  }

  _forgetUnwatched() {
    for (const isin of [...this.items.keys()]) {
      if (!this._isWatched(isin)) this.items.delete(isin);
    }
    const names = [...this._listeners.keys(), ...this._codes.keys()];
    for (const isin of [...this.statuses.keys()]) {
      if (!this._isWatched(isin) && !names.some((name) => name.startsWith(isin))) this.statuses.delete(isin);
    }
    for (const group of [...this.groups.keys()]) {
      if (!this._isFollowed(group)) this.groups.delete(group);
    }
  }

  _isFollowed(group) {
    return this._listeners.has(group) || this._listeners.has(ALL_GROUPS);
  }

  _isWatched(isin) {
    if (this._listeners.has(EVERYTHING) && isInstrument(isin)) return true;
    return this._isNamed(isin) || this._followedBy.has(isin);
  }

  _isHeld(key) {
    return this._namesOf(this._isin(key)).length > 0;
  }

  // The names by which a key of the gateway is listened to.
  _namesOf(key) {
    return [key, this._codes.get(key)].filter((name) => this._isListened(name));
  }

  _isListened(key) {
    return [this._listeners, this._barListeners, this._tradeListeners].some((listeners) => listeners.has(key));
  }

  // Whether to ask for a key: whoever comes later to one that was refused is told as well.
  _isUnheld(listeners, key) {
    return !listeners.has(key) || this._rejected.has(key);
  }

  _isNamed(isin) {
    return this._listeners.has(isin) || this._listeners.has(this._codes.get(isin));
  }

  _isin(key) {
    return this._isins.get(key) ?? key;
  }

  _renamed(key) {
    let name = key;
    while (!this._listeners.has(name) && this._renames.has(name)) name = this._renames.get(name);
    return name;
  }

  // Some keys stand for other instruments from now on, or are called otherwise.
  _regroup({ instruments, members, renamed }) {
    this._instruments = instruments;
    for (const [old, name] of Object.entries(renamed)) {
      this._renames.set(old, name);
      this._renames.delete(name);
      const callbacks = this._listeners.get(old) ?? [];
      this._listeners.delete(old);
      this._setMembers(old, []);
      const others = this._listeners.get(name) ?? [];
      const all = new Set([...others, ...callbacks]);
      if (all.size) this._listeners.set(name, all);
      // It was given up before we knew what it is called now.
      else this._drop([name]);
    }
    for (const [key, isins] of Object.entries(members)) {
      if (!this._listeners.has(key)) continue;
      const before = new Set(this.members.get(key));
      this._setMembers(key, isins);
      // What is new to the key may be known by another one.
      const added = isins.filter((isin) => !before.has(isin) && this.items.has(isin));
      added.forEach((isin) => this._change(isin, null));
    }
    this._forgetUnwatched();
  }

  _setMembers(key, isins) {
    for (const isin of this.members.get(key) ?? []) {
      const groups = this._followedBy.get(isin);
      groups.delete(key);
      if (!groups.size) this._followedBy.delete(isin);
    }
    this.members.delete(key);
    if (!isins.length) return;
    this.members.set(key, isins);
    for (const isin of isins) {
      if (!this._followedBy.has(isin)) this._followedBy.set(isin, new Set());
      this._followedBy.get(isin).add(key);
    }
  }

  // A network or a visitor that is back does not wait; what the gateway asked for holds.
  _listen() {
    const { signal } = this._ended;
    const hurry = () => this._isDelayAsked || this.reconnect();
    const online = () => {
      this._attempt = 0;
      hurry();
    };
    globalThis.addEventListener?.("online", online, { signal });
    const shown = () => document.hidden || hurry();
    globalThis.document?.addEventListener("visibilitychange", shown, { signal });
  }

  _connect() {
    this._timer = undefined;
    this.retryAtMs = null;
    this._tell("connecting", "connecting");
    this._isSnapshotDue = false;
    this._staleReason = null;
    // What was refused has no position, and may spoil the list again.
    this._wanted = new Set([...this._listeners.keys()].filter((key) => !this._rejected.has(key)));
    this._asked.clear();
    this._dropped.clear();
    this._apart = [];
    this._refusals = 0;
    for (const isin of this._tradesBegun) this._tradesLost.add(isin);
    this._isBarSnapshotDue = false;
    this._positions = new Positions();
    this._checkNext(() => this._chain.follow(false));
    const socket = new WebSocket(this._url, "tick.v1");
    this._socket = socket;
    this._watch();
    socket.onopen = async () => {
      this._hasOpened = true;
      if (await this._authenticate(socket)) {
        this._isOpen = true;
        const rejected = [...this._rejected.keys()];
        const held = (listeners) => [...listeners.keys()].filter((key) => !this._rejected.has(key));
        this._ask({
          ...(this._isComplete && { since: this.position }),
          ...(this._statusNumber && { statuses_since: { epoch: this._statusEpoch, number: this._statusNumber } }),
        });
        this._isBarReturn = this._bars.size > 0;
        this._askBars(held(this._barListeners), this.barPosition);
        this._askTrades(held(this._tradeListeners));
        this._askAgain(rejected);
      }
    };
    socket.onmessage = (event) => {
      if (socket !== this._socket) return;
      this._watch();
      const beganMs = performance.now();
      const message = readMessage(event.data);
      this._positions._read(message);
      this._take(message);
      if (CHAINED.has(message.type)) this._checkNext(() => this._chain.take(event.data, message));
      if (this._isSilent) {
        this._isSilent = false;
        this._tellFeed();
      }
      this._say("onMessage", message, performance.now() - beganMs, event.data.length);
    };
    socket.onclose = (event) => {
      if (socket === this._socket) this._lost(event.code);
    };
  }

  // Returns whether the socket is still the one in use: getting a token takes time.
  async _authenticate(socket) {
    const { token } = this._options;
    if (token === undefined) return socket === this._socket;
    const made = async () => (typeof token === "function" ? token() : token);
    const text = await made().catch(() => null);
    if (socket !== this._socket) return false;
    if (text === null) {
      this._lost(null);
      socket.close();
      return false;
    }
    this._shown = this._send({ op: "auth", token: text });
    return true;
  }

  // A new token in time keeps the connection: at nine tenths of what is left.
  _renew(expires) {
    if (expires === null || typeof this._options.token !== "function") return;
    const leftMs = expires / 1000 - (Date.now() + this.clockSkewMs);
    const socket = this._socket;
    clearTimeout(this._renewal);
    // A browser's timer holds 31 bits of milliseconds.
    const waitMs = Math.min(0.9 * leftMs, 2 ** 31 - 1);
    this._renewal = setTimeout(() => this._authenticate(socket), waitMs);
  }

  _ask(positions = {}) {
    if (!this._isOpen || !this._wanted.size) return;
    const keys = [...this._wanted];
    this._wanted.clear();
    this._subscribe(keys, positions);
  }

  // Subscribe to keys of one kind.
  _subscribe(keys, options = {}) {
    if (!this._isOpen || !keys.length) return;
    keys.forEach((key) => this._rejected.delete(key));
    const chain = this._checked !== null && kindOf(keys) === EVERYTHING ? (this._chain?.place?.offset ?? true) : undefined;
    this._asked.set(this._send({ op: "subscribe", keys, ...this._calm, fields: this._fields, chain, ...options }), keys);
  }

  // Ask for those keys that are still listened to; say whether any is.
  _askAgain(keys) {
    for (const key of keys) {
      if (!this._listeners.has(key)) continue;
      this._wanted.add(key);
      this._isComplete = false;
    }
    this._ask();
    this._askBars(keys);
    this._askTrades(keys);
    return keys.some((key) => this._isListened(key));
  }

  // Ask for the next part of what was refused as a list.
  _askApart() {
    while (this._apart.length && !this._askAgain(this._apart.pop()));
  }

  // Whether a subscription to keys of a kind has no answer yet.
  _awaits(kind) {
    return [...this._asked.values(), ...this._apart].some((keys) => kindOf(keys) === kind);
  }

  _send(message) {
    this._ids += 1;
    this._socket.send(JSON.stringify({ id: this._ids, ...message }));
    return this._ids;
  }

  // Browsers do not show protocol pings: silence is the only sign of a dead connection.
  _watch() {
    clearTimeout(this._watchdog);
    clearTimeout(this._listening);
    this._listening = setTimeout(() => this._fellSilent(), this._silenceMs);
    this._watchdog = setTimeout(() => {
      const socket = this._socket;
      this._lost(null);
      socket.close();
    }, SILENT_HEARTBEATS * this._heartbeatMs);
  }

  _lost(code) {
    if (code !== null && isFinal(code)) {
      this._end(`closed (${code})`);
      return;
    }
    this._forgetSocket();
    const askedMs = this._noticedMs ?? (code === 4429 ? TOO_MANY_MESSAGES_MS : null);
    const delayMs = askedMs ?? backoffMs(this._attempt);
    this._isDelayAsked = askedMs !== null;
    this._noticedMs = undefined;
    this._attempt += 1;
    this._timer = setTimeout(() => this._connect(), delayMs);
    this.retryAtMs = Date.now() + delayMs;
    this._tellOffline();
    if (!this._hasOpened && !this._outsider) this._askWhy();
  }

  _tellOffline() {
    const leftMs = Math.max(0, this.retryAtMs - Date.now());
    this._tell("offline", `${this._outsider}reconnecting in ${(leftMs / 1000).toFixed(1)} s`);
  }

  // Tell once more, if a gateway is there and keeps this page out.
  async _askWhy() {
    const origin = await refusedOrigin(this._url);
    if (origin === null || this._hasOpened || this._timer === null) return;
    const fault =
      origin === "null"
        ? "this page has no origin, as one opened as a file: serve it, and list its origin"
        : `the gateway may not list this page's origin, ${origin},`;
    this._outsider = `${fault} in TICKTHROTTLE_ALLOWED_ORIGINS; `;
    if (this.retryAtMs !== null) this._tellOffline();
  }

  async _loadChain() {
    // A bundler that looked for it would fail wherever tick.js was copied alone.
    const beside = new URL("tick-chain.js", import.meta.url).href;
    const { ChainCheck } = await import(/* @vite-ignore */ beside);
    this._chain = new ChainCheck();
  }

  // Have something done with the chain when all before it is.
  _checkNext(step) {
    if (this._checked === null) return;
    this._checked = this._checked.then(step).then((verdict) => {
      if (!verdict || this._isClosed) return;
      if (this._options.onChain) this._say("onChain", verdict);
      else if (verdict.state === "broken") console.warn("the chain of windows is broken", verdict);
    });
  }

  _end(text) {
    this._forgetSocket();
    clearTimeout(this._timer);
    this._timer = null;
    this.retryAtMs = null;
    this._ended.abort();
    this._tell("closed", text);
  }

  // How long may nothing come: quiet windows are told by heartbeats only.
  get _silenceMs() {
    return Math.max(SILENT_WINDOWS * this.windowMs, this._heartbeatMs) + SILENCE_SLACK_MS;
  }

  _fellSilent() {
    if (this.lastWindow === null) return;
    this._isSilent = true;
    this._tell("stale", `nothing came for ${(this._silenceMs / 1000).toFixed(1)} s`);
  }

  _forgetSocket() {
    clearTimeout(this._watchdog);
    clearTimeout(this._listening);
    this._isSilent = false;
    clearTimeout(this._renewal);
    this._socket = null;
    this._isOpen = false;
  }

  _take(message) {
    switch (message.type) {
      case "welcome":
        // What is missing since the connection before a gateway may say.
        this._statusMissedBefore = this._statusMissed;
        this._statusMissed = this._statusEpoch === null ? 0 : null;
        this.statuses.clear();
        this._heartbeatMs = message.heartbeat_ms;
        this.windowMs = message.window_ms ?? this.windowMs;
        this._isPart = message.market !== undefined;
        this.clockSkewMs = message.server_time / 1000 - Date.now();
        break;
      case "ack":
        if (message.op === "subscribe") this._acknowledged(message);
        if (message.op === "auth") this._renewed(message);
        this._dropped.delete(message.id);
        break;
      case "error":
        this._refused(message);
        break;
      case "snapshot":
        this._enter(message.epoch);
        message.data.forEach((item) => this._put(item, null));
        message.groups?.forEach((figures) => this._putGroup(figures));
        if (message.final) this._isSnapshotDue = false;
        if (message.final) this._hold(message);
        if (message.final) this._isLookDue = true;
        this._lookForSilence();
        break;
      case "update":
        this._enter(message.epoch);
        message.data.forEach((item) => this._put(item, message.window));
        message.groups?.forEach((figures) => this._putGroup(figures));
        this._hold(message);
        break;
      case "bars":
        this._takeBars(message);
        break;
      case "trades":
        this._takeTrades(message);
        break;
      case "statuses":
        this._takeStatuses(message);
        break;
      case "heartbeat":
        this._hold(message);
        break;
      case "status":
        this._staleReason = message.feed === "live" ? null : message.message;
        this._isStarting = message.feed === "starting";
        this._tellFeed();
        break;
      case "members":
        this._regroup(message);
        break;
      case "notice":
        this._noticedMs = message.reconnect_after_ms;
        break;
    }
  }

  _acknowledged(message) {
    const kind = kindOf(this._asked.get(message.id) ?? []);
    this._asked.delete(message.id);
    this._attempt = this._refusals = 0;
    for (const [code, isin] of Object.entries(message.codes ?? {})) {
      this._isins.set(code, isin);
      this._codes.set(isin, code);
    }
    if (kind === BARS) {
      if (message.accepted.length) this._isBarSnapshotDue = true;
    } else if (kind === EVERYTHING) {
      // What comes before its snapshot is of other keys.
      const takesAll = !this._isPart;
      if (message.accepted.includes(EVERYTHING)) this._checkNext(() => this._chain.follow(takesAll));
      for (const [key, isins] of Object.entries(message.members ?? {})) this._setMembers(key, isins);
      this._instruments = message.instruments ?? this._instruments;
      if (message.accepted.length) this._isSnapshotDue = true;
    }
    this._reject(message.rejected);
    this._tellFeed();
    this._askApart();
    this._lookForSilence();
  }

  // Tell which keys are not held, and remember it.
  _reject(rejected) {
    for (const { key, code } of rejected) this._rejected.set(key, code);
    if (rejected.length) this._say("onRejected", rejected);
  }

  // Another token holds: tell what it takes, ask for what it may give.
  _renewed({ rejected, expires }) {
    const again = [...this._rejected.keys()].filter((key) => this._rejected.get(key) === "not_allowed");
    this._reject(rejected.flatMap((one) => this._namesOf(one.key).map((key) => ({ ...one, key }))));
    this._renew(expires);
    this._askAgain(again);
  }

  // What came too fast is said again; of a list that is refused each half. One after the
  // other: so few refusals come in a row, and the rest is held.
  _refused({ id, code, message, retry_after_ms: retryAfterMs }) {
    if (code === "rate_limited") {
      // Keys are still asked for, so that no position is held without them.
      const socket = this._socket;
      setTimeout(() => socket === this._socket && this._sayAgain(id), retryAfterMs);
      return;
    }
    this._dropped.delete(id);
    let keys = this._asked.get(id);
    if (!this._asked.delete(id)) return;
    if (code === "field_limit") {
      // Others have so many sets of fields that there is room for all alone.
      this._fields = ALL_FIELDS;
      this._apart.push(keys);
      this._askApart();
      return;
    }
    this._refusals += 1;
    // Fields are refused for any of the keys.
    const isOfList = OF_LISTS.has(code) && !message.startsWith("fields:");
    if (keys.length > 1 && isOfList && this._refusals < MOST_REFUSALS) {
      const half = keys.length >> 1;
      this._apart.push(keys.slice(half), keys.slice(0, half));
    } else {
      if (this._refusals >= MOST_REFUSALS) keys = keys.concat(...this._apart.splice(0).reverse());
      this._reject(keys.map((key) => ({ key, code, message })));
      this._tellFeed();
    }
    this._askApart();
    this._lookForSilence();
  }

  _sayAgain(id) {
    if (id === this._shown) this._authenticate(this._socket);
    this._drop(this._dropped.get(id) ?? []);
    this._dropped.delete(id);
    this._apart.push(this._asked.get(id) ?? []);
    this._asked.delete(id);
    this._askApart();
  }

  // Another epoch is another truth: nothing of the old one may stay. None at all means
  // that the gateway does not know yet.
  _enter(epoch) {
    if (epoch === this._epoch || epoch === null) return;
    if (this._epoch !== null) {
      this.items.clear();
      this.groups.clear();
      this._changed.clear();
      this._say("onReset");
    }
    this._epoch = epoch;
  }

  // A position holds for all keys only once each of them has had its snapshot.
  _hold(message) {
    if (message.window !== null) this.lastWindow = Math.max(message.window, this.lastWindow ?? 0);
    const isWaiting = this._wanted.size || this._awaits(EVERYTHING) || this._isSnapshotDue;
    if (message.epoch === null || isWaiting) return;
    this._isComplete = true;
    this.position = { epoch: message.epoch, offset: message.offset };
    if (this.members.size) this.position.instruments = this._instruments;
  }

  // Have keys without an item told, if they have none a window later either. What is asked for
  // has to be answered by then, and to be there.
  _lookForSilence() {
    if (!this._isLookDue || this._awaits(EVERYTHING) || this._isSnapshotDue) return;
    this._isLookDue = false;
    // What was subscribed to just now is asked for in a moment.
    const isNew = (key) => !this._lookedAt.has(key) && !this._rejected.has(key) && !this._wanted.has(key);
    const keys = [...this._listeners.keys()].filter(isNew);
    keys.forEach((key) => this._lookedAt.add(key));
    const silent = keys.filter((key) => this._hasNothing(key));
    if (!silent.length) return;
    // Node need not wait for it.
    setTimeout(() => this._tellSilence(silent), this.windowMs).unref?.();
  }

  _tellSilence(keys) {
    if (this._ended.signal.aborted) return;
    const isHeld = (key) => this._listeners.has(key) && !this._rejected.has(key);
    const silent = keys.filter((key) => isHeld(key) && this._hasNothing(key));
    if (!silent.length) return;
    if (this._options.onNothing) this._say("onNothing", silent);
    else console.warn(silenceOf(silent, this.lastWindow !== null));
  }

  _hasNothing(key) {
    if (key === EVERYTHING) return ![...this.items.keys()].some(isInstrument);
    if (key.startsWith(GROUP)) return false;
    return !(this.members.get(key) ?? [this._isin(key)]).some((isin) => this.items.has(isin));
  }

  // A gateway that is a little behind may send what another one has sent before. Its days
  // are as old, and what it sends from then on adds to those.
  _put(item, window) {
    if (!this._isWatched(item.isin)) return;
    const known = this.items.get(item.isin);
    const day = dayAfter(item, known?.day);
    if (known && isOlder(item, known)) {
      this.items.set(item.isin, { ...known, day });
      return;
    }
    // What waits to be told is told with it: a hidden page is not painted for hours.
    const isWaiting = known !== undefined && (this._changed.get(item.isin) ?? null) !== null;
    if (day !== undefined) item.day = day;
    this.items.set(item.isin, isWaiting ? joined(item, known) : item);
    this._change(item.isin, window);
  }

  _putGroup(figures) {
    const known = this.groups.get(figures.group);
    if (!this._isFollowed(figures.group) || known?.window > figures.window) return;
    this.groups.set(figures.group, figures);
    this._change(figures.group, figures.window);
  }

  _change(isin, window) {
    this._changed.set(isin, window ?? this._changed.get(isin) ?? null);
    if (this._isPaintDue) return;
    this._isPaintDue = true;
    const later = globalThis.requestAnimationFrame ?? ((paint) => setTimeout(paint, 16));
    later(() => this._paint());
  }

  // What changed more than once since the last frame is shown once, as it is now.
  _paint() {
    this._isPaintDue = false;
    const changed = this._changed;
    this._changed = new Map();
    // Nothing is made for each of them: of a whole board it was a third of the garbage.
    let value;
    let window;
    let callback;
    const call = () => callback(value, window);
    const callSafely = (one) => {
      callback = one;
      safely(call);
    };
    const tell = (key) => this._listeners.get(key)?.forEach(callSafely);
    changed.forEach((itsWindow, name) => {
      value = this.items.get(name) ?? this.groups.get(name);
      if (value === undefined) return;
      window = itsWindow;
      if (window === null && value.trades && this.items.has(name)) value = standingFor(value, 0, null);
      // By each key by which an instrument, or a group, is followed.
      tell(name);
      if (this.groups.has(name)) {
        tell(ALL_GROUPS);
      } else {
        tell(this._codes.get(name));
        if (isInstrument(name)) tell(EVERYTHING);
        this._followedBy.get(name)?.forEach(tell);
      }
    });
  }

  _tellFeed() {
    if (this._staleReason === null) this._tell("live", "live");
    else this._tell(this._isStarting ? "starting" : "stale", this._staleReason);
  }

  _say(name, ...values) {
    safely(() => this._options[name]?.(...values));
  }

  _tell(state, text) {
    this._say("onState", state, text);
  }
}
