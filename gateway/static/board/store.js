// What the board knows: the newest row of every issue. Pure.

import { isWanted, sectorsOf } from "./choice/filters.js";
import { limitOf } from "./day/limits.js";
import { joined, widened } from "./day/range.js";
import { Trace } from "./day/trace.js";
import { changeOf, places } from "./format.js";
import { comparator } from "./order.js";
import { matches, searchText, words } from "./search.js";
import { ISIN } from "./watchlist.js";

// The text of /v1/issues; a previous close keeps its digits, as decimal text.
export function readIssues(text) {
  return JSON.parse(text.replace(/"prev_close":\s*(-?[\d.]+)/g, '"prev_close":"$1"'));
}

export class Store {
  constructor() {
    this.rows = new Map(); // ISIN -> row
    this.issues = new Map(); // ISIN -> {code, name, market, sector, prev_close}
    this.sectors = []; // [name, count of issues], by name
    this.firstPrices = new Map(); // ISIN -> price first seen since the page opened
    this.traces = new Map(); // ISIN -> what was seen of its price (day/trace.js)
    this.days = new Map(); // ISIN -> the range of its newest day (day/range.js)
    this.newestMs = 0; // the time of the newest trade, by the exchange's clock
    this.hasSums = false; // whether a trade has said what was traded in its day
    this.window = null; // the newest window's end
    this.changed = 0; // rows that came with it
    this.tradesInWindow = 0;
    this.totalTrades = 0; // since the page opened
    this.totalRows = 0;
    this._counted = null;
    this._firstWindow = null;
  }

  // Names may come before or after prices.
  setIssues(issues) {
    this.issues = new Map(issues.map((issue) => [issue.isin, issue]));
    this.sectors = sectorsOf(issues);
    this._renew();
  }

  // Of all issues that have one: another list takes the place of the one before.
  setDays(days) {
    this.days = new Map(days.map((day) => [day.isin, joined(this.days.get(day.isin), day)]));
    for (const { item } of this.rows.values()) this._widen(item);
    this._renew();
  }

  // The issue that has this ISIN or this code, null if none is known to have it.
  isinOf(text) {
    const wanted = text.toUpperCase();
    if (ISIN.test(wanted)) return wanted;
    for (const { isin, code } of this.issues.values()) {
      if (code?.toUpperCase() === wanted) return isin;
    }
    return null;
  }

  // Another epoch: everything known before is void. What was counted stays counted.
  clear() {
    this.rows.clear();
    this.firstPrices.clear();
    this.traces.clear();
    this.days.clear();
  }

  // `window` is null for what was known when the page asked.
  put(item, window) {
    const known = this.rows.get(item.isin);
    if (!this.traces.has(item.isin)) {
      this.firstPrices.set(item.isin, item.price);
      this.traces.set(item.isin, new Trace());
    }
    if (known?.item.seq !== item.seq) this.traces.get(item.isin).add(Number(item.price));
    this.newestMs = Math.max(this.newestMs, item.time / 1000);
    this._widen(item);
    const trades = (known?.trades ?? 0) + item.trades;
    this.rows.set(item.isin, this._row(item, { trades, window }));
  }

  // A window that went by without a trade is only heard of.
  hear(window) {
    this._firstWindow ??= window;
    if (window > (this.window ?? 0)) this.changed = this.tradesInWindow = 0;
    this.window = window;
  }

  // Returns for how long windows have come without a trade, and since when; the end of
  // the last window that had one, null if there was none since the page opened.
  quiet() {
    if (this.window === null) return { quietMs: 0, sinceMs: null };
    const sinceMs = this._counted;
    return { quietMs: this.window - (sinceMs ?? this._firstWindow), sinceMs };
  }

  // A window may come in parts, one from each of several jobs.
  count(update) {
    const trades = update.data.reduce((sum, item) => sum + item.trades, 0);
    const isPart = update.window === this._counted;
    this.changed = update.data.length + (isPart ? this.changed : 0);
    this.tradesInWindow = trades + (isPart ? this.tradesInWindow : 0);
    this.totalTrades += trades;
    this.totalRows += update.data.length;
    this._firstWindow ??= update.window;
    this.window = this._counted = update.window;
  }

  // The rows a visitor asked for, in the order asked for.
  select({ search = "", watched = null, filters = null, order }) {
    const wanted = words(search);
    const found = [];
    for (const row of this.rows.values()) {
      if (watched !== null && !watched.has(row.isin)) continue;
      if (filters !== null && !isWanted(filters, row.issue)) continue;
      if (wanted.length && !matches(row.text, wanted)) continue;
      found.push(row);
    }
    return found.sort(comparator(order));
  }

  get hasDays() {
    return this.days.size > 0;
  }

  // What changes are measured against: "close", "first", or "mixed".
  get reference() {
    let closes = 0;
    for (const row of this.rows.values()) closes += row.isAgainstClose;
    if (!closes) return "first";
    return closes === this.rows.size ? "close" : "mixed";
  }

  _renew() {
    for (const [isin, row] of this.rows) this.rows.set(isin, this._row(row.item, row));
  }

  _widen({ isin, price, time }) {
    const day = this.days.get(isin);
    if (day !== undefined) this.days.set(isin, widened(day, Number(price), time / 1000));
  }

  _row(item, { trades, window }) {
    const issue = this.issues.get(item.isin) ?? null;
    const close = issue?.prev_close ?? null;
    const isAgainstClose = Boolean(Number(close));
    const reference = isAgainstClose ? close : this.firstPrices.get(item.isin);
    const known = this.rows.get(item.isin);
    const turnover = sumOf(item.cum_value);
    this.hasSums ||= turnover !== null;
    return {
      isin: item.isin,
      item,
      issue,
      window, // in which the item came
      trades, // since the page opened
      price: Number(item.price),
      change: changeOf(item.price, reference),
      digits: Math.max(places(item.price), places(reference)),
      isAgainstClose,
      volume: sumOf(item.cum_volume), // of the day so far, as its newest trade says
      turnover,
      trace: this.traces.get(item.isin),
      day: this.days.get(item.isin), // undefined: nobody tells it
      limit: limitOf(issue, Number(item.price)),
      isHalted: issue?.status === "halted",
      text: known?.issue === issue ? known.text : searchText(item.isin, issue),
    };
  }
}

// Of a trade that says nothing of its day: null.
function sumOf(value) {
  const sum = Number(value ?? NaN);
  return Number.isFinite(sum) ? sum : null;
}
