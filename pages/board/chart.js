// The chart of an instrument's windows: its prices, and beneath them how many trades each had.

import { AreaSeries } from "lightweight-charts";
import { Component, createRef } from "preact";

import { phrase, say } from "../language.js";
import { colour } from "../shell.js";
import { faded, TimeChart } from "./candles/time_chart.js";
import { clockText, placesNeeded, priceText, zoneText } from "./format.js";
import { chartPoints, newPoint } from "./history.js";
import { html } from "./html.js";

// Properties: name, windows (history.js; a new array for each change), kind of the change
// ("up", "down", or "" for none), whose colour the line has; isSmall: without words below.
export class Chart extends Component {
  constructor() {
    super();
    this.frame = createRef();
  }

  componentDidMount() {
    this.drawing = new TimeChart(this.frame.current, {
      series: AreaSeries,
      seriesOptions: { lineWidth: 2 },
      timeScale: { timeVisible: true, secondsVisible: true, barSpacing: 5 },
      timeText: (time) => clockText(time * 1000),
      columnsTop: 0.84,
      onPaint: () => this.paint(),
    });
    this.drawing.paint();
    this.fill([]);
  }

  componentDidUpdate(before) {
    if (before.windows !== this.props.windows) this.fill(before.windows);
    if (before.kind !== this.props.kind) this.paintPrices();
  }

  componentWillUnmount() {
    this.drawing.remove();
  }

  paint() {
    this.paintPrices();
    this.drawing.columns.applyOptions({ color: faded(colour("soft"), 0.45) });
  }

  paintPrices() {
    const price = colour(this.props.kind || "soft");
    this.drawing.prices.applyOptions({
      lineColor: price,
      topColor: faded(price, 0.24),
      bottomColor: faded(price, 0.02),
      priceLineColor: price,
    });
  }

  // `before` are the windows that are drawn.
  fill(before) {
    const { windows } = this.props;
    const newest = newPoint(before, windows);
    if (newest !== null && placesNeeded(windows.at(-1).price) <= this.digits) {
      this.drawing.put(priceOf(newest), columnOf(newest));
      return;
    }
    const points = chartPoints(windows);
    this.digits = windows.reduce((most, { price }) => Math.max(most, placesNeeded(price)), 0);
    this.drawing.fill(points.map(priceOf), points.map(columnOf), this.digits);
  }

  render({ windows, name, isSmall }) {
    return html`
      <figure class="chart">
        <div class="canvas" role="img" aria-label=${summaryText(name, windows)} ref=${this.frame}></div>
        ${!isSmall &&
        html`
          <figcaption class="soft">
            ${say("Latest price of each window, and its trades. Times: {zone}.", { zone: zoneText() })}${" "}
            <a href="https://www.tradingview.com/" target="_blank" rel="noopener noreferrer"
              >${say("Charts by TradingView")}</a
            >
          </figcaption>
        `}
      </figure>
    `;
  }
}

const priceOf = ({ time, value }) => ({ time, value });
const columnOf = ({ time, trades }) => ({ time, value: trades });

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
