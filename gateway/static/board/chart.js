// The chart of an issue's windows: its prices, and beneath them how many trades each had.

import { AreaSeries } from "lightweight-charts";
import { Component, createRef } from "preact";

import { colour } from "../shell.js";
import { faded, TimeChart } from "./candles/time_chart.js";
import { clockText, places, priceText } from "./format.js";
import { chartPoints } from "./history.js";
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
    this.fill();
  }

  componentDidUpdate(before) {
    if (before.windows !== this.props.windows) this.fill();
    if (before.kind !== this.props.kind) this.paint();
  }

  componentWillUnmount() {
    this.drawing.remove();
  }

  paint() {
    const [soft, price] = ["soft", this.props.kind || "soft"].map(colour);
    this.drawing.prices.applyOptions({
      lineColor: price,
      topColor: faded(price, 0.24),
      bottomColor: faded(price, 0.02),
      priceLineColor: price,
    });
    this.drawing.columns.applyOptions({ color: faded(soft, 0.45) });
  }

  fill() {
    const points = chartPoints(this.props.windows);
    const digits = Math.max(0, ...this.props.windows.map(({ price }) => places(price)));
    this.drawing.fill(
      points.map(({ time, value }) => ({ time, value })),
      points.map(({ time, trades }) => ({ time, value: trades })),
      digits,
    );
  }

  render({ windows, name, isSmall }) {
    return html`
      <figure class="chart">
        <div class="canvas" role="img" aria-label=${summaryText(name, windows)} ref=${this.frame}></div>
        ${!isSmall &&
        html`
          <figcaption class="soft">
            Latest price of each window, and its trades.${" "}
            <a href="https://www.tradingview.com/" target="_blank" rel="noopener noreferrer"
              >Charts by TradingView</a
            >
          </figcaption>
        `}
      </figure>
    `;
  }
}

// What the picture says, in a sentence.
export function summaryText(name, windows) {
  if (!windows.length) return `Chart of ${name}: no window yet`;
  const prices = windows.map(({ price }) => Number(price));
  const text = (price) => priceText(price);
  const first = windows[0];
  const last = windows.at(-1);
  return (
    `Chart of ${name}: ${windows.length} windows from ${clockText(first.window)} to ` +
    `${clockText(last.window)}, from ${text(first.price)} to ${text(last.price)}, ` +
    `between ${text(Math.min(...prices))} and ${text(Math.max(...prices))}`
  );
}
