// What the board knows of one instrument. Pure.
//
// A row is the same object for as long as its instrument is known, and changes in place: objects
// of thousands of instruments anew in each window are what the page's garbage would be made of.
// `version` is another number whenever something in the row is another one.

import { weightOf } from "./day/board_index.js";
import { limitOf } from "./day/limits.js";
import { countsForRange } from "./day/range.js";
import { Trace } from "./day/trace.js";
import { figuresOf } from "./figures.js";
import { changeOf, placesNeeded } from "./format.js";
import { searchText } from "./search.js";

const NONE = [];

export class Row {
  // Begins with the first item of its instrument that the page has seen; `number` counts rows.
  constructor({ isin, price }, instrument, number = 0) {
    this.isin = isin;
    this.item = null; // the newest
    this.day = undefined; // the day so far as of the item (tick.js); undefined: nobody knows it
    this.window = null; // in which the item came; null: it was known when the page asked
    this.trades = 0; // since the page opened
    this.statuses = NONE; // what its exchange says of its trading (tick.js)
    this.isCorrected = false; // the newest item takes back what was shown, or is a correction
    this.price = NaN;
    this.digits = 0; // how many places its prices have needed, and their differences
    this.high = NaN; // of all trades that the newest item stands for, as `low`; NaN: of none
    this.low = NaN;
    this.change = null; // against the previous close, or else the first price seen (format.js)
    this.gained = 0; // what its change adds to the value of all listed shares (day/board_index.js)
    this.turnover = null; // of the day so far, as `volume`; null: nobody tells it
    this.volume = null;
    this.trace = new Trace(number); // how its price has gone
    this.version = 0;
    this._figures = null;
    this._first = price;
    this._compared = null; // the price and the reference that the change is of
    this._against = null;
    this._know(instrument);
  }

  // A newer item has come, or one of late trades, which tells the same price once more.
  put(item, window) {
    const own = saysRange(item) ? item.price : NaN;
    this.high = Number(item.high ?? own);
    this.low = Number(item.low ?? own);
    // What was known when the page asked is of its own time, and newer than what is shown.
    const timeMs = window ?? Math.max(item.time / 1000, this.trace.times.at(-1) ?? 0);
    if (this.item?.seq !== item.seq) this.trace.add(timeMs, Number(item.price), this.high, this.low);
    else this.trace.widen(this.high, this.low);
    const isTakenBack = this.item !== null && (item.revision ?? 0) > (this.item.revision ?? 0);
    this.isCorrected = isTakenBack || item.corrects !== undefined;
    this.item = item;
    this.day = item.day;
    this.window = window;
    this.trades += item.trades;
    this.turnover = sumOf(this.turnoverText);
    this.volume = sumOf(this.volumeText);
    this._compare();
  }

  setStatuses(statuses) {
    if (statuses === this.statuses) return;
    this.statuses = statuses;
    this.version += 1;
  }

  // The instrument table is another one, or has come.
  join(instrument) {
    this._know(instrument);
    this._compare();
  }

  // The gateway has told its closes of minutes (day/trace.js).
  fill(endMs, closes) {
    this.version += 1;
    this.trace.fill(endMs, closes);
  }

  // As they are written (figures.js).
  get figures() {
    if (this._figures?.version !== this.version) this._figures = figuresOf(this);
    return this._figures;
  }

  // With every digit: of the day so far, or else what its newest trade says of it.
  get turnoverText() {
    return this.day?.value ?? this.item.cum_value;
  }

  get volumeText() {
    return this.day?.volume ?? this.item.cum_volume;
  }

  // "upper", "lower" or null (day/limits.js).
  get limit() {
    return limitOf(this.instrument, this.price);
  }

  // Says the instrument table, and the exchange nothing.
  get isHalted() {
    const isTold = this.statuses.some(({ status }) => status !== "price_bands");
    return !isTold && this.instrument?.status === "halted";
  }

  // What a search looks at.
  get text() {
    this._text ??= searchText(this.isin, this.instrument);
    return this._text;
  }

  get _reference() {
    return this.isAgainstClose ? this.instrument.prev_close : this._first;
  }

  _know(instrument) {
    this.instrument = instrument; // what the instrument table says of it; null: nothing
    this.isAgainstClose = Boolean(Number(instrument?.prev_close)); // whether the change is
    this._weight = weightOf(instrument);
    this._text = null;
  }

  _compare() {
    this.version += 1;
    const { price } = this.item;
    const reference = this._reference;
    if (price !== this._compared || reference !== this._against) this._compareAnew(price, reference);
    this.gained = this._weight * this.change.difference;
  }

  _compareAnew(price, reference) {
    this._compared = price;
    this._against = reference;
    this.price = Number(price);
    this.digits = Math.max(this.digits, placesNeeded(price), placesNeeded(reference));
    this.change = changeOf(price, reference);
  }
}

// Whether the item's own trade says its range: not beside sums, nor one that counts for
// the last price or the volume alone.
const saysRange = ({ volume, updates }) => volume === undefined && countsForRange(updates);

// Of what nobody tells: null.
function sumOf(value) {
  const sum = Number(value ?? NaN);
  return Number.isFinite(sum) ? sum : null;
}
