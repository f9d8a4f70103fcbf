// The charts that are on the screen beside each other, and what feeds them.

import { BarFeed } from "../candles/bar_feed.js";
import { WindowFeed } from "../candles/window_feed.js";

export class OpenCharts {
  // `ticks` is the line to the gateway; `interval()` says which bars are to be drawn,
  // null or undefined for windows; `onChange()` is called after every change.
  constructor({ ticks, interval, onChange }) {
    this._ticks = ticks;
    this._interval = interval;
    this._onChange = onChange;
    this._charts = new Set();
    this._isins = new Set();
  }

  // Begin to feed an instrument's chart; whoever opens it closes it.
  open(isin) {
    const chart = new OpenChart(isin, { ticks: this._ticks, onChange: this._onChange });
    this._charts.add(chart);
    this._isins.add(isin);
    chart.choose(this._interval() ?? null);
    return chart;
  }

  close(chart) {
    this._charts.delete(chart);
    this._isins = new Set([...this._charts].map((each) => each.isin));
    chart.stop();
  }

  // Another interval has been chosen, or it has become known that there are bars.
  choose() {
    for (const chart of this._charts) chart.choose(this._interval() ?? null);
  }

  // The stream has brought an item.
  put(item, window) {
    if (window === null || !this._isins.has(item.isin)) return;
    for (const chart of this._charts) if (chart.isin === item.isin) chart.windows.put(item, window);
  }

  // Some messages with bars may have been missed.
  load() {
    for (const chart of this._charts) chart.bars.load();
  }
}

class OpenChart {
  constructor(isin, { ticks, onChange }) {
    this.isin = isin;
    this.windows = new WindowFeed(isin, { onChange });
    this.bars = new BarFeed(isin, { ticks, onChange: () => this._changed(onChange) });
  }

  // Whether candles are drawn; where no bars come, windows are.
  get hasBars() {
    return this.bars.interval !== null && this.bars.state !== "missing";
  }

  choose(interval) {
    this.bars.choose(interval);
    this._loadWindows();
  }

  stop() {
    this.windows.stop();
    this.bars.stop();
  }

  _changed(onChange) {
    this._loadWindows();
    onChange();
  }

  _loadWindows() {
    if (!this.hasBars) this.windows.load();
  }
}
