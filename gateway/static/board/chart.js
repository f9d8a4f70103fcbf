// The chart of an issue's windows: its prices, and beneath them how many trades each had.

import { AreaSeries, createChart, HistogramSeries } from "lightweight-charts";
import { Component, createRef } from "preact";

import { phrase, say } from "../language.js";
import { colour, onColours } from "../shell.js";
import { clockText, places, priceText, zoneText } from "./format.js";
import { chartPoints } from "./history.js";
import { html } from "./html.js";

// Properties: name, windows (history.js; a new array for each change), kind of the change
// ("up", "down", or "" for none), whose colour the line has.
export class Chart extends Component {
  constructor() {
    super();
    this.frame = createRef();
  }

  componentDidMount() {
    this.chart = createChart(this.frame.current, {
      autoSize: true,
      // Its own logo writes a style element, which the page's policy refuses; the link
      // below says the same.
      layout: { attributionLogo: false, background: { color: "transparent" }, fontSize: 11 },
      grid: { vertLines: { visible: false } },
      rightPriceScale: { borderVisible: false, scaleMargins: { top: 0.08, bottom: 0.26 } },
      timeScale: {
        borderVisible: false,
        timeVisible: true,
        secondsVisible: true,
        tickMarkFormatter: (time) => clockText(time * 1000),
        rightOffset: 2,
        barSpacing: 5,
      },
      localization: { timeFormatter: (time) => clockText(time * 1000) },
      handleScale: { mouseWheel: false },
      handleScroll: { mouseWheel: false, vertTouchDrag: false },
    });
    this.prices = this.chart.addSeries(AreaSeries, { lineWidth: 2 });
    this.trades = this.chart.addSeries(HistogramSeries, {
      priceScaleId: "trades",
      priceFormat: { type: "volume" },
      lastValueVisible: false,
      priceLineVisible: false,
    });
    this.chart.priceScale("trades").applyOptions({ scaleMargins: { top: 0.84, bottom: 0 } });
    this.endColours = onColours(() => this.paint());
    this.paint();
    this.fill();
  }

  componentDidUpdate(before) {
    if (before.windows !== this.props.windows) this.fill();
    if (before.kind !== this.props.kind) this.paint();
  }

  componentWillUnmount() {
    this.endColours();
    this.chart.remove();
  }

  paint() {
    const [line, soft, price] = ["line", "soft", this.props.kind || "soft"].map(colour);
    this.chart.applyOptions({
      layout: { textColor: soft },
      grid: { horzLines: { color: line } },
      crosshair: {
        vertLine: { color: soft, labelBackgroundColor: soft },
        horzLine: { color: soft, labelBackgroundColor: soft },
      },
    });
    this.prices.applyOptions({
      lineColor: price,
      topColor: faded(price, 0.24),
      bottomColor: faded(price, 0.02),
      priceLineColor: price,
    });
    this.trades.applyOptions({ color: faded(soft, 0.45) });
  }

  fill() {
    const points = chartPoints(this.props.windows);
    const digits = Math.max(0, ...this.props.windows.map(({ price }) => places(price)));
    this.prices.applyOptions({
      priceFormat: {
        type: "custom",
        minMove: 10 ** -digits,
        formatter: (price) => priceText(price.toFixed(digits)),
      },
    });
    this.prices.setData(points.map(({ time, value }) => ({ time, value })));
    this.trades.setData(points.map(({ time, trades }) => ({ time, value: trades })));
  }

  render({ windows, name }) {
    return html`
      <figure class="chart">
        <div class="canvas" role="img" aria-label=${summaryText(name, windows)} ref=${this.frame}></div>
        <figcaption class="soft">
          ${say("Latest price of each window, and its trades. Times: {zone}.", { zone: zoneText() })}${" "}
          <a href="https://www.tradingview.com/" target="_blank" rel="noopener noreferrer"
            >${say("Charts by TradingView")}</a
          >
        </figcaption>
      </figure>
    `;
  }
}

export function faded(rgb, opacity) {
  const [red, green, blue] = rgb.match(/[\d.]+/g);
  return `rgba(${red}, ${green}, ${blue}, ${opacity})`;
}

// What the picture says, in a sentence.
export function summaryText(name, windows) {
  if (!windows.length) return say("Chart of {name}: no window yet", { name });
  const prices = windows.map(({ price }) => Number(price));
  const first = windows[0];
  const last = windows.at(-1);
  return say(SUMMARY, {
    name,
    count: windows.length,
    from: clockText(first.window),
    to: `${clockText(last.window)} ${zoneText()}`,
    first: priceText(first.price),
    last: priceText(last.price),
    low: priceText(Math.min(...prices)),
    high: priceText(Math.max(...prices)),
  });
}

const SUMMARY = phrase(
  "Chart of {name}: {count} window from {from} to {to}, from {first} to {last}, between {low} and {high}|Chart of {name}: {count} windows from {from} to {to}, from {first} to {last}, between {low} and {high}",
);
