// The newest trades of the instrument that is open, every one, while somebody looks at them.

const MOST = 100;

export class TradeFeed {
  // `ticks` is the line to the gateway; `onChange()` is called after every change.
  constructor(isin, { ticks, onChange }) {
    this.isin = isin;
    this.entries = []; // the newest first
    this.missed = 0; // of all since it began: a number, null where nobody knows
    this._ticks = ticks;
    this._onChange = onChange;
    this._end = null;
  }

  start() {
    this._end ??= this._ticks.trades(this.isin, (entry) => this._put(entry));
  }

  // Who looks again begins anew: what came meanwhile is not known.
  stop() {
    this._end?.();
    this._end = null;
    this.entries = [];
    this.missed = 0;
  }

  _put(entry) {
    this.entries = [entry, ...this.entries.slice(0, MOST - 1)];
    if (entry.missed !== 0) this.missed = entry.missed === null || this.missed === null ? null : this.missed + entry.missed;
    this._onChange();
  }
}
