// Charts of the active watch-list, or of what is most traded, beside each other, nine at most. A chart is loaded when
// it comes into view, and freed when it is no longer shown.

import { Component, createRef } from "preact";
import { useState } from "preact/hooks";

import { say } from "../../language.js";
import { CandleChart } from "../candles/candle_chart.js";
import { Intervals } from "../candles/instrument_chart.js";
import { Chart } from "../chart.js";
import { html } from "../html.js";
import { langOf, nameOf } from "../names.js";
import { Change, Price } from "../table.js";
import { AT_ONCE, pageOf } from "./pages.js";

const NEAR = "200px"; // how far out of view a chart is loaded already

// Properties: rows (of the list), list (what it is called), hint beside that, charts (open_charts.js), interval
// (of the bars, null for windows), onChart(interval or null), selected, onSelect(isin),
// emptyText.
export function ChartGrid({ rows, list, hint, charts, interval, onChart, selected, onSelect, emptyText }) {
  const [wanted, setWanted] = useState(0);
  const { rows: shown, page, first, count } = pageOf(rows, wanted);
  const isWhole = count <= AT_ONCE;
  return html`
    <section id="charts" tabindex="-1" aria-label=${say("Charts of {list}", { list })}>
      <div class="crumbs">
        <h2>${list}</h2>
        <span class="soft">${hint}</span>
        ${!isWhole &&
        html`
          <span class="pages">
            <button type="button" class="quiet icon" aria-label=${say("Charts before")} disabled=${page === 0} onClick=${() => setWanted(page - 1)}>‹</button>
            <span class="soft" role="status">${say("{first} to {last} of {count}", { first: first + 1, last: first + shown.length, count })}</span>
            <button
              type="button"
              class="quiet icon"
              aria-label=${say("Charts after")}
              disabled=${first + AT_ONCE >= count}
              onClick=${() => setWanted(page + 1)}
            >
              ›
            </button>
          </span>
        `}
        <${Intervals} interval=${interval} onChart=${onChart} />
      </div>
      ${shown.length === 0
        ? html`<p class="soft empty">${emptyText}</p>`
        : html`
            <div class="cells" data-count=${shown.length}>
              ${shown.map(
                (row) => html`
                  <${Cell} key=${row.isin} row=${row} charts=${charts} isSelected=${row.isin === selected} onSelect=${onSelect} />
                `,
              )}
            </div>
          `}
    </section>
  `;
}

class Cell extends Component {
  constructor() {
    super();
    this.frame = createRef();
    this.state = { chart: null };
  }

  componentDidMount() {
    const { row, charts } = this.props;
    this.watch = new IntersectionObserver(
      (seen) => {
        if (!seen.some(({ isIntersecting }) => isIntersecting)) return;
        this.watch.disconnect();
        this.setState({ chart: charts.open(row.isin) });
      },
      { rootMargin: NEAR },
    );
    this.watch.observe(this.frame.current);
  }

  componentWillUnmount() {
    this.watch.disconnect();
    if (this.state.chart !== null) this.props.charts.close(this.state.chart);
  }

  render({ row, isSelected, onSelect }, { chart }) {
    const { isin, instrument, change } = row;
    const name = nameOf(instrument, isin);
    return html`
      <article class="cell panel" data-isin=${isin} data-selected=${isSelected} ref=${this.frame}>
        <header>
          <h3><button type="button" class="quiet" lang=${langOf(instrument)} title=${name} onClick=${() => onSelect(isin)}>${name}</button></h3>
          <span class="greys quote">
            <${Price} row=${row} />${" "}
            <span class=${change.kind}><${Change} row=${row} /></span>
          </span>
        </header>
        <div class="greys drawing">${chart !== null && html`<${Drawing} chart=${chart} row=${row} name=${name} />`}</div>
      </article>
    `;
  }
}

function Drawing({ chart, row, name }) {
  const { bars, windows, hasBars } = chart;
  if (!hasBars) return html`<${Chart} name=${name} windows=${windows.windows} kind=${row.change.kind} isSmall=${true} />`;
  return html`
    <${CandleChart}
      key=${bars.interval}
      name=${name}
      bars=${bars.bars}
      interval=${bars.interval}
      prevClose=${row.instrument?.prev_close ?? null}
      isSmall=${true}
    />
  `;
}
