// The table of instruments: only rows in view are in the document.
//
// The focus stays on the table; the row that keys act on is its active descendant.

import { Component, createRef } from "preact";

import { phrase, say } from "../language.js";
import { NO_WIDTHS, widest } from "./columns.js";
import { KIND_WORDS, zoneText } from "./format.js";
import { calm, html } from "./html.js";
import { TableRow } from "./table_row.js";
import { rowAfter, scrollTopFor, visibleRange } from "./virtual.js";

const TITLES = {
  spark: phrase("the prices of the newest half hour, as far as they are known"),
  range: phrase("the lowest and highest price of the stock's day, and where the price is between them"),
  rangeSeen: phrase("the lowest and highest price of the newest half hour and since this page opened, and where the price is between them"),
  turnover: phrase("what was paid in the stock's day so far"),
  volume: phrase("how much was traded in the stock's day so far"),
  trades: phrase("since this page opened, and how many the newest window's row stands for"),
};

// On a low screen the head scrolls away (board.css), and does once the rows are scrolled.
const low = matchMedia("(max-height: 37.5rem)");

// How wide the columns are that figures of any length have to fit into (board.css).
const styleOf = (columns) =>
  Object.fromEntries(columns.filter(({ isFitted }) => isFitted).map(({ id, rem }) => [`--${id}`, `${rem}rem`]));

// How wide the figures of rows are (columns.js), as they are written.
const widthsOf = (rows) => rows.reduce((most, { figures }) => widest(most, figures.widths), NO_WIDTHS);

// Properties: rows, layout (columns.js), hasDays (ranges are of the day), isMixed (not every change is against a close),
// order, onOrder(column), window (the newest), watched, onStar(isin), selected,
// onSelect(isin), onTop() when a key leads up from the first row, onTouch() while a visitor is
// busy in it, onWidth(rem), onFigures(widths) of the figures in view.
export class Table extends Component {
  constructor() {
    super();
    this.scroller = createRef();
    this.table = createRef();
    this.scrollTop = 0;
    this.state = { viewHeight: 600, rowHeight: 36, activeIsin: null };
  }

  componentDidMount() {
    this.resized = new ResizeObserver(() => this.measure());
    this.resized.observe(this.scroller.current);
    this.measure();
    this.props.onFigures(this.widths);
  }

  // The row of an instrument that was opened elsewhere comes into view.
  componentDidUpdate(before) {
    const { rows, selected, layout, onFigures } = this.props;
    onFigures(this.widths);
    if (layout.isDense !== before.layout.isDense) this.measure();
    if (selected === undefined || selected === before.selected) return;
    const index = rows.findIndex((row) => row.isin === selected);
    if (index >= 0) this.activate(index);
  }

  componentWillUnmount() {
    this.resized.disconnect();
  }

  measure() {
    const scroller = this.scroller.current;
    const head = this.table.current.tHead.offsetHeight;
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    this.props.onWidth(scroller.clientWidth / rem);
    const rowHeight = parseFloat(getComputedStyle(scroller).getPropertyValue("--row")) * rem;
    this.setState({ viewHeight: scroller.clientHeight - head, rowHeight });
  }

  // Where the table is scrolled to, in rows there are: a search may have left fewer.
  get place() {
    const { viewHeight, rowHeight } = this.state;
    const count = this.props.rows.length;
    const most = Math.max(0, count * rowHeight - viewHeight);
    return { count, viewHeight, rowHeight, scrollTop: Math.min(this.scrollTop, most) };
  }

  // Most steps of a scroll need no other rows.
  scrolled() {
    this.props.onTouch();
    const before = visibleRange(this.place);
    this.scrollTop = this.scroller.current.scrollTop;
    if (low.matches) this.scroller.current.scrollIntoView({ block: "nearest" });
    const after = visibleRange(this.place);
    if (after.first !== before.first || after.end !== before.end) this.setState({});
  }

  activeIndex() {
    return this.props.rows.findIndex((row) => row.isin === this.state.activeIsin);
  }

  pressed(event) {
    if (event.target !== this.table.current || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const { rows, selected, onSelect, onStar, onTouch, onTop } = this.props;
    const index = this.activeIndex();
    const next = rowAfter(event.key, index, this.place);
    if (event.key === "ArrowUp" && index === 0 && selected === undefined) onTop();
    else if (next !== null && next !== index && selected !== undefined) onSelect(rows[next].isin);
    else if (next !== null) this.activate(next);
    else if (index < 0) return;
    else if (event.key === "Enter") onSelect(rows[index].isin);
    else if (event.key === " ") onStar(rows[index].isin);
    else return;
    event.preventDefault();
    onTouch();
  }

  activate(index) {
    const scrollTop = scrollTopFor(index, this.place);
    this.scroller.current.scrollTop = scrollTop;
    this.scrollTop = scrollTop;
    this.setState({ activeIsin: this.props.rows[index].isin });
  }

  focused() {
    if (this.activeIndex() >= 0 || !this.props.rows.length) return;
    const { scrollTop, rowHeight } = this.place;
    this.setState({ activeIsin: this.props.rows[Math.ceil(scrollTop / rowHeight)]?.isin ?? null });
  }

  render({ rows, layout, hasDays, isMixed, order, onOrder, onTouch, ...rest }) {
    const { window, watched, onStar, selected, onSelect } = rest;
    const { first, end } = visibleRange(this.place);
    const { activeIsin, rowHeight } = this.state;
    const { columns, isTall, isDense, isLong } = layout;
    const shown = rows.slice(first, end);
    this.widths = widthsOf(shown);
    const active = shown.some((row) => row.isin === activeIsin);
    return html`
      <div
        class=${`scroller ${isTall ? "tall" : ""} ${isDense ? "dense" : ""} ${isLong ? "long" : ""}`}
        style=${styleOf(columns)}
        ref=${this.scroller}
        onScroll=${() => this.scrolled()}
      >
        <table
          role="grid"
          aria-label=${say("Stocks")}
          aria-rowcount=${rows.length + 1}
          aria-colcount=${columns.length}
          aria-describedby="keys"
          aria-activedescendant=${active ? `row-${activeIsin}` : undefined}
          tabindex="0"
          ref=${this.table}
          onKeyDown=${(event) => this.pressed(event)}
          onFocus=${() => this.focused()}
        >
          <${Head} columns=${columns} hasDays=${hasDays} order=${order} onOrder=${onOrder} />
          <${Space} rows=${first} height=${rowHeight} />
          <${Rows}
            rows=${shown}
            first=${first}
            columns=${columns}
            isMixed=${isMixed}
            window=${window}
            activeIsin=${activeIsin}
            selected=${selected}
            watched=${watched}
            onStar=${onStar}
            onSelect=${onSelect}
            onTouch=${onTouch}
          />
          <${Space} rows=${rows.length - end} height=${rowHeight} />
        </table>
      </div>
    `;
  }
}

const Head = calm(({ columns, hasDays, order, onOrder }) => {
  const titleOf = (id) => TITLES[id === "range" && !hasDays ? "rangeSeen" : id];
  return html`
    <thead role="rowgroup">
      <tr role="row" aria-rowindex="1">
        ${columns.map(({ id, label, order: column, isNumber }) => {
          const isSorted = column !== undefined && order.column === column;
          const arrow = order.direction === "ascending" ? "↑" : "↓";
          return html`
            <th
              key=${id}
              scope="col"
              role="columnheader"
              class=${`${id} ${isNumber ? "number" : ""}`}
              aria-sort=${column && (isSorted ? order.direction : "none")}
              title=${titleOf(id) && say(titleOf(id))}
            >
              ${column === undefined
                ? html`<span class=${id === "star" ? "visually-hidden" : ""}>${say(label)}</span>`
                : html`
                    <button type="button" class="quiet" onClick=${() => onOrder(column)}>
                      <span>${say(label)}${id === "time" && html` <span class="zone">${zoneText()}</span>`}</span>
                      ${isSorted && html`<span class="arrow" aria-hidden="true">${arrow}</span>`}
                    </button>
                  `}
            </th>
          `;
        })}
      </tr>
    </thead>
  `;
});

// Stands for the rows that are not in the document.
function Space({ rows, height }) {
  if (rows <= 0) return null;
  return html`<tbody aria-hidden="true" style=${{ height: `${rows * height}px` }}></tbody>`;
}

// The rows in view, which are no tree of elements (table_row.js). Properties are those of the
// table; `rows` are these alone, and `first` is the place of the first one.
class Rows extends Component {
  constructor() {
    super();
    this.body = createRef();
    this.places = []; // TableRow of each place, from `first` on
    this.first = 0;
  }

  componentDidMount() {
    this.show(this.props);
  }

  shouldComponentUpdate(next) {
    if (next.columns !== this.props.columns) this.places.splice(0).forEach((place) => place.remove());
    this.show(next);
    return false;
  }

  componentWillUnmount() {
    this.places.forEach((place) => place.remove());
  }

  // A place that stays in view stays where it is; one that leaves it becomes another one.
  show({ rows, first, columns, isMixed, window, activeIsin, selected, watched }) {
    const { places } = this;
    const body = this.body.current;
    const end = first + rows.length;
    const spare = [
      ...places.splice(0, Math.max(0, first - this.first)),
      ...places.splice(Math.max(0, end - Math.max(first, this.first))),
    ];
    this.first = places.length ? Math.max(first, this.first) : first;
    const next = () => spare.pop() ?? new TableRow(columns);
    for (; this.first > first; this.first -= 1) {
      places.unshift(next());
      body.prepend(places[0].element);
    }
    while (places.length < rows.length) {
      places.push(next());
      body.append(places.at(-1).element);
    }
    spare.forEach((place) => place.remove());
    rows.forEach((row, number) => {
      const { isin } = row;
      const about = { isActive: isin === activeIsin, isSelected: isin === selected, isWatched: watched.has(isin) };
      places[number].show(row, { index: first + number, window, isMixed, ...about });
    });
  }

  pressed({ target }) {
    const isin = target.closest("tr")?.id.slice("row-".length);
    if (isin === undefined) return;
    if (target.closest("button") === null) this.props.onSelect(isin);
    else this.props.onStar(isin);
  }

  render({ onTouch }) {
    return html`
      <tbody
        id="rows"
        role="rowgroup"
        class="greys"
        onPointerMove=${onTouch}
        onClick=${(event) => this.pressed(event)}
        ref=${this.body}
      ></tbody>
    `;
  }
}

// The newest price for the eye, its digits in the title.
export const Price = ({ row: { change, figures } }) =>
  html`<span class=${`price ${change.kind}`} title=${figures.priceTitle}>${figures.price}</span>`;

// The difference and what it is in per cent; both are read out as one.
export const Change = ({ row: { change, figures } }) => html`
  <span class="visually-hidden">${say(KIND_WORDS[change.kind])} </span>
  <span class="difference" title=${figures.differenceTitle}>${figures.difference}</span>${" "}
  <span class="ratio">${figures.ratio}</span>
`;
