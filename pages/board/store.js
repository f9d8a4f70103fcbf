// What the board knows: the newest row of every instrument. Pure.

import { isWanted, sectorsOf } from "./choice/filters.js";
import { basesOf } from "./day/board_index.js";
import { comparator } from "./order.js";
import { Row } from "./row.js";
import { matches, words } from "./search.js";
import { ISIN } from "./watchlist.js";

// The text of /v1/instruments; a previous close keeps its digits, as decimal text.
export function readInstruments(text) {
  return JSON.parse(text.replace(/"prev_close":\s*(-?[\d.]+)/g, '"prev_close":"$1"'));
}

const NO_TRENDS = { endMs: null, closes: new Map() };
const NONE = [];

export class Store {
  constructor() {
    this.rows = new Map(); // ISIN -> row (row.js)
    this.all = []; // the same rows: an array is gone through without making anything
    this.instruments = new Map(); // ISIN -> {code, name, market, sector, prev_close}
    this.sectors = []; // [name, count of instruments], by name
    this.newestMs = 0; // the time of the newest trade, by the exchange's clock
    this.hasDays = false; // whether an item has said the day so far
    this.hasSums = false; // whether it, or else a trade, has said what was traded in its day
    this.indexBases = new Map(); // of the board indices (day/board_index.js)
    this.window = null; // the newest window's end
    this.changed = 0; // rows that came with it
    this.tradesInWindow = 0;
    this.totalTrades = 0; // since the page opened
    this.totalRows = 0;
    this._against = 0; // rows whose change is against the previous close
    this._statuses = new Map();
    this._counted = null;
    this._firstWindow = null;
    this._trends = NO_TRENDS;
  }

  // Names may come before or after prices.
  setInstruments(instruments) {
    this.instruments = new Map(instruments.map((instrument) => [instrument.isin, instrument]));
    this.sectors = sectorsOf(instruments);
    this.indexBases = basesOf(instruments);
    this.all.forEach((row) => row.join(this._instrumentOf(row)));
    this._against = this.all.filter((row) => row.isAgainstClose).length;
  }

  // What /v1/trends tells; it may come before or after prices.
  setTrends({ end, data }) {
    this._trends = { endMs: end, closes: new Map(data.map(({ isin, closes }) => [isin, closes])) };
    this.all.forEach((row) => this._fill(row));
  }

  // ISIN -> what its exchange says of its trading, all that is current.
  setStatuses(statuses) {
    this._statuses = statuses;
    this.all.forEach((row) => row.setStatuses(this._statusesOf(row)));
  }

  // The instrument that has this ISIN or this code, null if none is known to have it.
  isinOf(text) {
    const wanted = text.toUpperCase();
    if (ISIN.test(wanted)) return wanted;
    for (const { isin, code } of this.instruments.values()) {
      if (code?.toUpperCase() === wanted) return isin;
    }
    return null;
  }

  // Another epoch: everything known before is void. What was counted stays counted.
  clear() {
    this.rows.clear();
    this.all = [];
    this._against = 0;
    this.hasDays = false;
    this.newestMs = 0;
    this._trends = NO_TRENDS;
  }

  // `window` is null for what was known when the page asked.
  put(item, window) {
    const known = this.rows.get(item.isin);
    const row = known ?? new Row(item, this._instrumentOf(item), this.all.length);
    row.put(item, window);
    if (known === undefined) {
      row.setStatuses(this._statusesOf(row));
      this.rows.set(item.isin, row);
      this.all.push(row);
      if (row.isAgainstClose) this._against += 1;
      this._fill(row);
    }
    this.newestMs = Math.max(this.newestMs, item.time / 1000);
    this.hasDays ||= row.day !== undefined;
    this.hasSums ||= row.turnover !== null;
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
    this.all.sort(comparator(order)); // they mostly are in it: that is a look at each
    const isFiltered = filters !== null && filters.markets.size + filters.sectors.size > 0;
    if (watched === null && !isFiltered && !wanted.length) return [...this.all];
    return this.all.filter(
      (row) =>
        (watched === null || watched.has(row.isin)) &&
        (!isFiltered || isWanted(filters, row.instrument)) &&
        (!wanted.length || matches(row.text, wanted)),
    );
  }

  // What changes are measured against: "close", "first", or "mixed".
  get reference() {
    if (this._against === 0) return "first";
    return this._against === this.all.length ? "close" : "mixed";
  }

  _fill(row) {
    const closes = this._trends.closes.get(row.isin);
    if (closes !== undefined) row.fill(this._trends.endMs, closes);
  }

  _statusesOf({ isin }) {
    return this._statuses.get(isin) ?? NONE;
  }

  _instrumentOf({ isin }) {
    return this.instruments.get(isin) ?? null;
  }
}
