// The series of the instrument that is open: its trades at one venue, or in one session.

import { getJson } from "../shell.js";
import { readMessage } from "../tick.js";

export class SeriesFeed {
  // `ticks` is the line to the gateway; `onChange()` is called after every change.
  constructor(isin, { ticks, onChange }) {
    this.isin = isin;
    this.items = new Map(); // name of a series -> its newest item
    this._ticks = ticks;
    this._onChange = onChange;
    this._followed = new Set();
    this._ends = [];
    this._heard = new Set(); // venues and sessions that its trades have had
    this._stopped = new AbortController();
  }

  // Which there are is asked; what comes of them is followed.
  async load() {
    const { signal } = this._stopped;
    try {
      const { series } = await getJson(`v1/quotes/${this.isin}?fields=series`, { read: readMessage, signal });
      if (!signal.aborted) this._follow(Object.values(series).map(({ isin }) => isin));
    } catch {
      // The instrument has not traded yet, or nobody answers: its next trade asks again.
      this._heard.clear();
    }
    this._hasAsked = true;
  }

  // A trade of the instrument: of a venue or a session that is new, a series may be, too.
  look({ venue, session }) {
    const news = [venue, session].filter((name) => name !== undefined && !this._heard.has(name));
    for (const name of news) this._heard.add(name);
    if (news.length && this._hasAsked) this.load();
  }

  stop() {
    this._stopped.abort();
    for (const end of this._ends) end();
  }

  _follow(keys) {
    const others = keys.filter((key) => !this._followed.has(key));
    for (const key of others) this._followed.add(key);
    if (others.length) this._ends.push(this._ticks.subscribe(others, (item) => this._put(item)));
  }

  _put(item) {
    this.items.set(item.isin.slice(this.isin.length + 1), item);
    this._onChange();
  }
}
