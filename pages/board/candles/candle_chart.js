// The chart of an instrument's bars: candles, their volume beneath, the previous close as a
// line. What the pointer or the arrow keys are at is told above it, in figures.

import { CandlestickSeries, LineStyle } from "lightweight-charts";
import { Component, createRef } from "preact";

import { parts, say } from "../../language.js";
import { colour } from "../../shell.js";
import { clockText, zoneText } from "../format.js";
import { html } from "../html.js";
import { amountText, barAfter, barText, candleOf, digitsOf, fullText, kindOf, spanText } from "./bars.js";
import { faded, TimeChart } from "./time_chart.js";

// Properties: name, bars (bars.js; a new array for each change), interval, prevClose
// (decimal text or null), isSmall: without figures and words around it.
export class CandleChart extends Component {
  constructor() {
    super();
    this.frame = createRef();
    this.state = { start: null }; // of the bar that is looked at; null for the newest
    this.hovered = null; // by the pointer
  }

  componentDidMount() {
    const { interval } = this.props;
    const tick = (time) => spanText({ start: time * 1000, end: time * 1000 }, interval);
    const clock = (time) => (interval === "1d" ? tick(time) : clockText(time * 1000).slice(0, 5));
    this.drawing = new TimeChart(this.frame.current, {
      series: CandlestickSeries,
      seriesOptions: { borderVisible: false },
      timeScale: { timeVisible: interval !== "1d", secondsVisible: false, barSpacing: 7 },
      timeText: clock,
      tickText: tick,
      columnsTop: 0.8,
      onPaint: () => this.paint(),
    });
    this.chart = this.drawing.chart;
    this.candles = this.drawing.prices;
    this.chart.subscribeCrosshairMove(({ time }) => this.point(time));
    // What is drawn, for who asks in the console, and for tests.
    this.frame.current.drawn = () => ({ candles: this.candles.data(), volumes: this.drawing.columns.data() });
    this.drawing.paint();
  }

  componentDidUpdate(before) {
    if (before.bars !== this.props.bars) this.fill();
    if (before.prevClose !== this.props.prevClose) this.drawClose();
  }

  componentWillUnmount() {
    this.drawing.remove();
  }

  paint() {
    const [soft, up, down] = ["soft", "up", "down"].map(colour);
    this.colours = { up: faded(up, 0.4), down: faded(down, 0.4), soft: faded(soft, 0.4) };
    this.candles.applyOptions({ upColor: up, downColor: down, wickUpColor: up, wickDownColor: down });
    this.fill();
    this.drawClose();
  }

  fill() {
    const { bars } = this.props;
    const volumes = bars.map((bar) => ({
      time: bar.start / 1000,
      value: Number(bar.volume ?? 0),
      color: this.colours[kindOf(bar)],
    }));
    this.drawing.fill(bars.map(candleOf), volumes, digitsOf(bars));
  }

  drawClose() {
    if (this.close !== undefined) this.candles.removePriceLine(this.close);
    this.close = undefined;
    const price = Number(this.props.prevClose);
    if (!price) return;
    this.close = this.candles.createPriceLine({
      price,
      color: colour("soft"),
      lineWidth: 1,
      lineStyle: LineStyle.Dashed,
      axisLabelVisible: true,
    });
  }

  point(time) {
    const start = time === undefined ? null : time * 1000;
    if (start === this.hovered) return;
    this.hovered = start;
    this.setState({ start });
  }

  // The bar that is looked at, by its place; the newest if none is.
  place() {
    const { bars } = this.props;
    const place = bars.findIndex(({ start }) => start === this.state.start);
    return place < 0 ? bars.length - 1 : place;
  }

  pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { bars } = this.props;
    const next = barAfter(event.key, this.place(), bars.length);
    if (next === null) return;
    event.preventDefault();
    event.stopPropagation();
    const bar = bars[next];
    this.setState({ start: next === bars.length - 1 ? null : bar.start });
    this.chart.setCrosshairPosition(Number(bar.close), bar.start / 1000, this.candles);
  }

  left() {
    this.chart.clearCrosshairPosition();
    this.setState({ start: null });
  }

  render({ bars, name, interval, prevClose, isSmall }) {
    const place = this.place();
    const bar = bars[place];
    return html`
      <figure class="chart">
        ${!isSmall && html`<${Legend} bar=${bar} interval=${interval} prevClose=${prevClose} />`}
        <div
          class="canvas candles"
          role="slider"
          tabindex="0"
          aria-label=${say("Bars of {name}", { name })}
          aria-orientation="horizontal"
          aria-valuemin="1"
          aria-valuemax=${Math.max(1, bars.length)}
          aria-valuenow=${Math.max(1, place + 1)}
          aria-valuetext=${bar === undefined ? say("no bar yet") : barText(bar, interval)}
          onKeyDown=${(event) => this.pressed(event)}
          onBlur=${() => this.left()}
          ref=${this.frame}
        ></div>
        ${!isSmall &&
        html`
          <figcaption class="soft">
            ${Number(prevClose)
              ? say("Candles by the exchange's clock, their volume, the previous close.")
              : say("Candles by the exchange's clock, their volume.")}${" "}
            ${say("Times: {zone}.", { zone: zoneText() })}${" "}
            ${parts("{left} {right} go from bar to bar.", { left: html`<kbd>←</kbd>`, right: html`<kbd>→</kbd>` })}${" "}
            <a href="https://www.tradingview.com/" target="_blank" rel="noopener noreferrer">${say("Charts by TradingView")}</a>
          </figcaption>
        `}
      </figure>
    `;
  }
}

// The figures of the bar that is looked at.
function Legend({ bar, interval, prevClose }) {
  if (bar === undefined) return html`<p class="legend soft">${say("No bar yet.")}</p>`;
  const kind = kindOf(bar);
  const figures = [
    [say("legend::O"), bar.open],
    [say("legend::H"), bar.high],
    [say("legend::L"), bar.low],
    [say("legend::C"), bar.close],
  ];
  return html`
    <p class="legend" aria-hidden="true">
      <span class="soft">${spanText(bar, interval)}</span>
      ${figures.map(
        ([label, price]) =>
          html`<span key=${label}><span class="soft">${label}</span> <b class=${kind} title=${fullText(price)}>${amountText(price)}</b></span>`,
      )}
      <span><span class="soft">${say("Vol")}</span> <b>${amountText(bar.volume)}</b></span>
      ${Number(prevClose) > 0 && html`<span><span class="soft">┄ ${say("prev. close")}</span> <b title=${fullText(prevClose)}>${amountText(prevClose)}</b></span>`}
      ${!bar.closed && html`<span class="soft">${say("bar::open")}</span>`}
      ${bar.revision > 0 && html`<span class="soft">${say("amended {count}×", { count: bar.revision })}</span>`}
    </p>
  `;
}
