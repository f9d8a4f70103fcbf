// The instrument a visitor looks at: its windows, and, while the visitor compares, the same
// price asked for every so often.

import { authorization } from "../shell.js";
import { readMessage } from "../tick.js";
import { BarFeed } from "./candles/bar_feed.js";
import { WindowFeed } from "./candles/window_feed.js";
import { SeriesFeed } from "./series_feed.js";
import { madeMs, Staleness } from "./staleness.js";
import { TradeFeed } from "./trade_feed.js";

export const POLL_MS = 10_000;

export class Selection {
  // `clock()` is the server's time, `windowMs()` a window's length, as far as is known;
  // `onChange()` is called after every change; `ticks` is the line to the gateway, and
  // `chart()` says which bars are to be drawn, undefined where there are none.
  constructor(isin, { clock, windowMs, onChange, ticks, chart }) {
    this.isin = isin;
    this.feed = new BarFeed(isin, { ticks, onChange });
    this.series = new SeriesFeed(isin, { ticks, onChange });
    this.trades = new TradeFeed(isin, { ticks, onChange });
    this._chart = chart;
    this._past = new WindowFeed(isin, { onChange });
    this.staleness = new Staleness(["polled", "pushed"]);
    this.pushed = null;
    this.polled = { item: null, refreshedMs: null, polls: 0, unchanged: 0, problem: null };
    this.comparedMs = clock(); // since when prices are compared
    this._clock = clock;
    this._windowMs = windowMs;
    this._onChange = onChange;
    this._etag = null;
    this._stopped = new AbortController();
  }

  get windows() {
    return this._past.windows;
  }

  get history() {
    return this._past.state;
  }

  start() {
    this._isStarted = true;
    this.followBars();
    this._past.load();
    this.series.load();
    if (this._isCompared) this.startPolling();
  }

  // Ask from now on, or once the instrument stays open.
  startPolling() {
    this._isCompared = true;
    if (!this._isStarted || this._timer !== undefined) return;
    if (this.polled.polls === 0) this.comparedMs = this._clock();
    this._poll();
    this._timer = setInterval(() => this._poll(), POLL_MS);
  }

  stopPolling() {
    this._isCompared = false;
    clearInterval(this._timer);
    this._timer = undefined;
  }

  stop() {
    this.stopPolling();
    this._stopped.abort();
    this._past.stop();
    this.feed.stop();
    this.series.stop();
    this.trades.stop();
  }

  // Bars are followed once it is known that there are some.
  followBars() {
    const chart = this._chart();
    if (!this._isStarted || chart === undefined) return;
    this.feed.followDay();
    this.feed.choose(chart);
  }

  // The stream has brought an item; `window` is null for what was known before.
  put(item, window) {
    this.pushed = item;
    this.series.look(item);
    this.staleness.show("pushed", item, this._clock(), madeMs(item, this._windowMs(), window));
    if (window !== null) this._past.put(item, window);
  }

  // As a page without a stream would: a real request, cheap when nothing has changed.
  async _poll() {
    const headers = { ...authorization() };
    if (this._etag !== null) headers["If-None-Match"] = this._etag;
    try {
      const response = await fetch(`v1/quotes/${this.isin}`, {
        headers,
        cache: "no-store",
        signal: this._stopped.signal,
      });
      if (!response.ok && response.status !== 304) throw new Error(`answered ${response.status}`);
      this._etag = response.headers.get("ETag") ?? this._etag;
      if (response.status === 304) this.polled.unchanged += 1;
      else this._answered(readMessage(await response.text()));
      this.polled.refreshedMs = this._clock();
      this.polled.problem = null;
    } catch (error) {
      if (this._stopped.signal.aborted) return;
      this.polled.problem = error.message;
    }
    this.polled.polls += 1;
    this._onChange();
  }

  _answered(item) {
    const nowMs = this._clock();
    this.polled.item = item;
    const stampMs = madeMs(item, this._windowMs(), null);
    // What the stream has not brought yet was made since the last poll.
    const made = nowMs - stampMs < POLL_MS ? stampMs : nowMs;
    this.staleness.show("polled", item, nowMs, made);
  }
}
