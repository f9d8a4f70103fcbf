// The visitor's alerts: kept by the browser, judged with every message. Of several tabs the
// first tells; one that hears of it shows it too, without a sound. Two that hear of a price
// in the same instant may both tell, and each shows it once.

import { alertsText, numberProblem, parseAlerts } from "./kept.js";
import { armed, decisivePrice, judged, judgedByBursts } from "./rules.js";

const KEY = "alerts";
const MOST_NOTICES = 20;
const SAME_MS = 10_000; // two tabs that tell the same are not further apart

export class Alerts {
  // `storage` has read(name) and write(name, text); `itemOf(isin)` is the item that is shown
  // and `closeOf(isin)` the previous close, as decimal text, or nothing; `onTold(alerts)` is
  // called when some are due here, `onChange()` after every change.
  constructor({ storage, itemOf, closeOf, onTold, onChange, nowMs = Date.now }) {
    this.list = [];
    this.notices = []; // told and not yet dismissed, newest first: {id, alert}
    this._storage = storage;
    this._itemOf = itemOf;
    this._closeOf = closeOf;
    this._onTold = onTold;
    this._onChange = onChange;
    this._nowMs = nowMs;
    this._text = storage.read(KEY);
    this.list = parseAlerts(this._text);
  }

  of(isin) {
    return this.list.filter((alert) => alert.isin === isin);
  }

  get hasBursts() {
    return this.list.some(({ kind, isDone }) => kind === "burst" && !isDone);
  }

  // Add an alert, or put it in the place of the one with its id, armed by the price of now.
  // Returns why it cannot be, null if it can.
  set({ id = newId(this._nowMs()), ...alert }) {
    this.follow();
    const place = this.list.findIndex((each) => each.id === id);
    const problem = place < 0 ? numberProblem(this.list) : null;
    if (problem !== null) return problem;
    const next = armed({ id, ...alert }, this._priceOf(alert.isin), this._closeOf(alert.isin));
    this._keep(place < 0 ? [...this.list, next] : this.list.map((each) => (each.id === id ? next : each)));
    this._onChange();
    return null;
  }

  remove(id) {
    this.follow();
    this._keep(this.list.filter((alert) => alert.id !== id));
    this._onChange();
  }

  // Prices have come, with a message: its items say what was touched on the way to them,
  // nothing where none of their trades counts for the range.
  judge({ window = null, data = [] } = {}) {
    const nowMs = this._nowMs();
    const reached = new Map();
    for (const { isin, price, high, low } of this.list.length ? data : []) {
      const isShown = price === this._itemOf(isin)?.price; // else of a gateway that is behind
      if (high !== undefined && isShown) reached.set(isin, { window, high, low });
    }
    this._judge((alert) => {
      const { isin } = alert;
      const ends = reached.get(isin);
      return judged(alert, this._priceOf(isin, ends), this._closeOf(isin), nowMs, ends ?? { window });
    });
  }

  // The newest bursts have come.
  judgeBursts(bursts) {
    const nowMs = this._nowMs();
    this._judge((alert) => judgedByBursts(alert, bursts, nowMs));
  }

  dismiss(id) {
    this.notices = this.notices.filter((notice) => notice.id !== id);
    this._onChange();
  }

  dismissAll() {
    this.notices = [];
    this._onChange();
  }

  _priceOf(isin, ends) {
    const item = this._itemOf(isin);
    return item && decisivePrice(item, ends);
  }

  // Take in what another tab has kept. A browser that keeps nothing leaves what is here.
  follow() {
    const text = this._storage.read(KEY);
    if (text === null || text === this._text) return;
    const known = new Map(this.list.map((alert) => [alert.id, alert]));
    this._text = text;
    this.list = parseAlerts(text);
    this._notice(this.list.filter((alert) => known.has(alert.id) && isNews(alert, known.get(alert.id))));
    this._onChange();
  }

  _judge(rule) {
    this.follow();
    const outcomes = this.list.map(rule);
    if (outcomes.every(({ alert }, place) => alert === this.list[place])) return;
    this._keep(outcomes.map(({ alert }) => alert));
    const due = outcomes.filter(({ isDue }) => isDue).map(({ alert }) => alert);
    if (!due.length) return;
    this._notice(due);
    this._onChange();
    this._onTold(due);
  }

  _notice(alerts) {
    const notices = alerts.map((alert) => ({ id: `${alert.id} ${alert.toldMs}`, alert }));
    this.notices = [...notices.reverse(), ...this.notices].slice(0, MOST_NOTICES);
  }

  _keep(list) {
    this.list = list;
    this._text = alertsText(list);
    this._storage.write(KEY, this._text);
  }
}

// Whether an alert has been told since it was known as it was.
function isNews(alert, before) {
  if (alert.toldMs === null || alert.toldMs === before.toldMs) return false;
  const isSame = alert.toldPrice === before.toldPrice && alert.burstMs === before.burstMs;
  return !isSame || before.toldMs === null || Math.abs(alert.toldMs - before.toldMs) > SAME_MS;
}

const newId = (nowMs) => `${nowMs.toString(36)}-${Math.random().toString(36).slice(2, 10)}`;
