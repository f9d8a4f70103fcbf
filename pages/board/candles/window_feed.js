// The windows of an instrument: those that were, from REST, and those that come.

import { getJson } from "../../shell.js";
import { readMessage } from "../../tick.js";
import { merged, withLog } from "../history.js";

const HISTORY = 300;

export class WindowFeed {
  // `onChange()` is called when the past has come, or will not come.
  constructor(isin, { onChange }) {
    this.isin = isin;
    this.windows = []; // a new array for each change
    this.state = "none"; // or "loading", "ready", "missing"
    this._onChange = onChange;
    this._stopped = new AbortController();
  }

  // The stream has brought an item.
  put({ price, size, trades, time }, window) {
    this.windows = merged(this.windows, [{ window, price, size, trades, time }]);
  }

  // Ask for the past, once.
  async load() {
    if (this.state !== "none") return;
    this.state = "loading";
    try {
      const { data } = await getJson(`v1/instruments/${this.isin}/windows?limit=${HISTORY}`, {
        read: readMessage,
        signal: this._stopped.signal,
      });
      this.windows = withLog(data, this.windows);
      this.state = "ready";
    } catch {
      this.state = "missing";
    }
    if (!this._stopped.signal.aborted) this._onChange();
  }

  stop() {
    this._stopped.abort();
  }
}
