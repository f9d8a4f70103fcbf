// The bars of the instrument that is open: those that were, from REST, and those that come.

import { authorization, getJson } from "../../shell.js";
import { readBars } from "../../tick.js";
import { mergedBars } from "./bars.js";

const HISTORY = 300;
const DAY = "1d";

export class BarFeed {
  // `ticks` is the line to the gateway; `onChange()` is called after every change.
  constructor(isin, { ticks, onChange }) {
    this.isin = isin;
    this.interval = null; // of the bars that are followed, null for none
    this.bars = [];
    this.state = "none"; // or "loading", "ready", "missing"
    this.day = null; // the newest day
    this._ticks = ticks;
    this._onChange = onChange;
    this._ends = new Map(); // interval -> what ends following it
    this._stopped = new AbortController();
  }

  // Follow the newest day, for its statistics.
  followDay() {
    this._follow(DAY);
  }

  // Follow other bars; null follows none.
  choose(interval) {
    if (interval === this.interval) return;
    const before = this.interval;
    this.interval = interval;
    this.bars = [];
    this.state = interval === null ? "none" : "loading";
    if (before !== null && before !== DAY) this._end(before);
    if (interval !== null) {
      this._follow(interval);
      if (interval === DAY && this.day !== null) this.bars = [this.day];
      this.load();
    }
    this._onChange();
  }

  // Read what there is anew: some messages may have been missed.
  async load() {
    const { isin, interval } = this;
    if (interval === null) return;
    try {
      const { data } = await getJson(`v1/bars/${isin}?interval=${interval}&limit=${HISTORY}`, {
        read: readBars,
        signal: this._stopped.signal,
      });
      if (interval !== this.interval) return;
      this.bars = mergedBars(this.bars, data);
      this.state = "ready";
    } catch {
      if (interval !== this.interval) return;
      this.state = this.bars.length ? "ready" : "missing";
    }
    if (!this._stopped.signal.aborted) this._onChange();
  }

  stop() {
    this._stopped.abort();
    for (const interval of [...this._ends.keys()]) this._end(interval);
  }

  _follow(interval) {
    if (this._ends.has(interval)) return;
    const put = (bar) => this._put(bar);
    this._ends.set(interval, this._ticks.bars(interval, [this.isin], put));
  }

  _end(interval) {
    this._ends.get(interval)?.();
    this._ends.delete(interval);
  }

  _put(bar) {
    if (bar.interval === DAY && bar.start >= (this.day?.start ?? 0)) this.day = bar;
    if (bar.interval === this.interval) {
      this.bars = mergedBars(this.bars, [bar]);
      if (this.state === "missing") this.load();
    }
    this._onChange();
  }
}

// The newest lists of movers, null where there are none.
export async function getMovers(signal) {
  const response = await fetch("v1/movers", { headers: authorization(), cache: "no-cache", signal });
  return response.ok ? readBars(await response.text()) : null;
}
