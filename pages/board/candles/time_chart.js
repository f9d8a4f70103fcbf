// What every chart of an instrument is made of: a series of prices, and beneath it one of
// columns, in the page's colours.

import { createChart, HistogramSeries } from "lightweight-charts";

import { colour, onColours } from "../../shell.js";
import { eyeText } from "../format.js";
import { drawnFrom } from "./points.js";

const NEWEST_TIME_PX = 60; // how wide the time below the newest point may be
const FEWEST = 24; // points that a chart has room for: fewer begin at its left

export class TimeChart {
  // `series` is the kind of the prices' series, with its `seriesOptions`; `timeText(time)`
  // writes a time, `tickText` one below the chart. Columns begin at `columnsTop`, 0 to 1.
  // `onPaint()` is called whenever the theme's colours are to be taken.
  constructor(frame, { series, seriesOptions, timeScale, timeText, tickText = timeText, columnsTop, onPaint }) {
    this.chart = createChart(frame, {
      autoSize: true,
      // Its own logo writes a style element, which the page's policy refuses; the link
      // below says the same.
      layout: { attributionLogo: false, background: { color: "transparent" }, fontSize: 11 },
      grid: { vertLines: { visible: false } },
      rightPriceScale: { borderVisible: false, entireTextOnly: true, scaleMargins: { top: 0.08, bottom: 0.26 } },
      timeScale: { borderVisible: false, tickMarkFormatter: tickText, rightOffsetPixels: NEWEST_TIME_PX / 2, ...timeScale },
      localization: { timeFormatter: timeText },
      handleScale: { mouseWheel: false },
      handleScroll: { mouseWheel: false, vertTouchDrag: false },
    });
    this.prices = this.chart.addSeries(series, seriesOptions);
    this.columns = this.chart.addSeries(HistogramSeries, {
      priceScaleId: "columns",
      priceFormat: { type: "volume" },
      lastValueVisible: false,
      priceLineVisible: false,
    });
    this.chart.priceScale("columns").applyOptions({ scaleMargins: { top: columnsTop, bottom: 0 } });
    this._drawn = new Map(); // series -> its points
    this._digits = null;
    this._onPaint = onPaint;
    this._endColours = onColours(() => this.paint());
  }

  // Take the colours of the theme.
  paint() {
    const [line, soft] = ["line", "soft"].map(colour);
    this.chart.applyOptions({
      layout: { textColor: soft },
      grid: { horzLines: { color: line } },
      crosshair: {
        vertLine: { color: soft, labelBackgroundColor: soft },
        horzLine: { color: soft, labelBackgroundColor: soft },
      },
    });
    this._onPaint();
  }

  // Draw points, each with its `time` in seconds; prices have so many digits.
  fill(prices, columns, digits) {
    if (digits !== this._digits) {
      this._digits = digits;
      const formatter = (price) => eyeText(price.toFixed(digits));
      this.prices.applyOptions({ priceFormat: { type: "custom", minMove: 10 ** -digits, formatter } });
    }
    this._fill(this.prices, prices);
    this._fill(this.columns, columns);
    this._place(prices.length);
  }

  // Few points are as wide as points are elsewhere, and leave room for those to come.
  _place(count) {
    const scale = this.chart.timeScale();
    if (count < FEWEST) scale.setVisibleLogicalRange({ from: -3, to: FEWEST });
    else if (this._isPlaced) scale.resetTimeScale();
    this._isPlaced = count < FEWEST;
  }

  // Draw the newest point of each, where all points before it are drawn and no price has
  // more digits.
  put(price, column) {
    for (const [series, point] of [[this.prices, price], [this.columns, column]]) {
      const drawn = this._drawn.get(series);
      if (drawn.at(-1).time === point.time) drawn.pop();
      drawn.push(point);
      series.update(point);
    }
    this._place(this._drawn.get(this.prices).length);
  }

  // Of a window only the end is new, mostly: the rest stays as it is drawn.
  _fill(series, points) {
    const from = drawnFrom(this._drawn.get(series) ?? [], points);
    this._drawn.set(series, points);
    if (from === null) series.setData(points);
    else for (const point of points.slice(from)) series.update(point);
  }

  remove() {
    this._endColours();
    this.chart.remove();
  }
}

// A colour with less of it.
export function faded(rgb, opacity) {
  const [red, green, blue] = rgb.match(/[\d.]+/g);
  return `rgba(${red}, ${green}, ${blue}, ${opacity})`;
}
