// The table of instruments: only rows in view are in the document.
//
// The focus stays on the table; the row that keys act on is its active descendant.

import { Component, createRef } from "preact";

import { phrase, say } from "../language.js";
import { DayCells, Marks, rangeWidth } from "./day/cells.js";
import { clockText, countText, differenceText, eyeText, fullTitle, KIND_WORDS, momentText, ratioText, widthOf, zoneText } from "./format.js";
import { douse, light } from "./flash.js";
import { html } from "./html.js";
import { aboutText, langOf, nameOf } from "./names.js";
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
function widthsOf(rows) {
  const most = (text) => rows.reduce((width, row) => Math.max(width, text(row)), 0);
  return {
    price: most(({ item, digits }) => widthOf(eyeText(item.price, digits))),
    difference: most(({ change, digits }) => widthOf(differenceText(change, digits))),
    ratio: most(({ change }) => widthOf(ratioText(change))),
    ends: most(rangeWidth),
  };
}

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
          <tbody id="rows" role="rowgroup" class="greys" onPointerMove=${onTouch}>
            ${shown.map(
              (row, place) => html`
                <${Row}
                  key=${first + place}
                  row=${row}
                  version=${row.version}
                  price=${row.price}
                  index=${first + place}
                  columns=${columns}
                  isMixed=${isMixed}
                  isNew=${row.window !== null && row.window === window}
                  isActive=${row.isin === activeIsin}
                  isSelected=${row.isin === selected}
                  isWatched=${watched.has(row.isin)}
                  onStar=${onStar}
                  onSelect=${onSelect}
                />
              `,
            )}
          </tbody>
          <${Space} rows=${rows.length - end} height=${rowHeight} />
        </table>
      </div>
    `;
  }
}

const isOther = (next, known) => Object.keys(next).some((name) => next[name] !== known[name]);

// In another language it is another page, which draws it anew.
class Head extends Component {
  shouldComponentUpdate(next) {
    return isOther(next, this.props);
  }

  render({ columns, hasDays, order, onOrder }) {
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
  }
}

// Stands for the rows that are not in the document.
function Space({ rows, height }) {
  if (rows <= 0) return null;
  return html`<tbody aria-hidden="true" style=${{ height: `${rows * height}px` }}></tbody>`;
}

// A place in the table: the instrument in it may be another one the next time. A row changes in
// place (row.js): its version and price are properties of their own.
class Row extends Component {
  constructor() {
    super();
    this.price = createRef();
  }

  shouldComponentUpdate(next) {
    return isOther(next, this.props);
  }

  componentDidUpdate(before) {
    const { row, price, isNew } = this.props;
    const isSame = row.isin === before.row.isin;
    const rise = price - before.price;
    if (!isSame) douse(this.price.current);
    else if (rise && isNew) light(this.price.current, rise > 0 ? "up" : "down");
  }

  componentWillUnmount() {
    douse(this.price.current);
  }

  render({ row, index, columns, isMixed, isNew, isActive, isSelected, isWatched, ...rest }) {
    const { onStar, onSelect } = rest;
    const { isin, item, instrument, change } = row;
    const timeMs = item.time / 1000;
    const cells = {
      star: () => html`<${Star} key="star" isin=${isin} instrument=${instrument} isWatched=${isWatched} onStar=${onStar} />`,
      name: () => html`
        <${Name} key="name" row=${row} instrument=${instrument} limit=${row.limit} isCorrected=${row.isCorrected} statuses=${row.statuses} />
      `,
      isin: () => html`
        <td role="gridcell" key="isin" class="isin code">
          ${isin} ${columns.every(({ id }) => id !== "name") && html`<${Marks} row=${row} />`}
        </td>
      `,
      price: () => {
        const text = eyeText(item.price, row.digits);
        const title = fullTitle(item.price, text);
        return html`
          <td role="gridcell" key="price" class=${`price number ${change.kind}`} title=${title} ref=${this.price}>${text}</td>
        `;
      },
      change: () => html`
        <td role="gridcell" key="change" class=${`change number ${change.kind}`}>
          <${Change} row=${row} isMixed=${isMixed} />
        </td>
      `,
      ...DayCells(row),
      trades: () => html`
        <td role="gridcell" key="trades" class="trades number">
          ${isNew && item.trades ? html`<span class="soft">+${item.trades}</span> ` : ""}
          ${row.trades ? countText(row.trades) : "–"}
        </td>
      `,
      time: () => html`
        <td role="gridcell" key="time" class="time number" title=${momentText(timeMs)}>
          ${clockText(timeMs)}
        </td>
      `,
    };
    return html`
      <tr
        role="row"
        id=${`row-${isin}`}
        aria-rowindex=${index + 2}
        aria-selected=${isSelected}
        class=${isActive ? "active" : ""}
        onClick=${() => onSelect(isin)}
      >
        ${columns.map(({ id }) => cells[id]())}
      </tr>
    `;
  }
}

// Cells that seldom change: what is drawn of the same as before is not drawn again.
class Star extends Component {
  shouldComponentUpdate(next) {
    return isOther(next, this.props);
  }

  render({ isin, instrument, isWatched, onStar }) {
    const star = (event) => {
      event.stopPropagation();
      onStar(isin);
    };
    return html`
      <td role="gridcell" class="star">
        <button type="button" class="quiet" tabindex="-1" aria-pressed=${isWatched} aria-label=${say("Watch {name}", { name: nameOf(instrument, isin) })} onClick=${star}>
          ${isWatched ? "★" : "☆"}
        </button>
      </td>
    `;
  }
}

class Name extends Component {
  shouldComponentUpdate(next) {
    return isOther(next, this.props);
  }

  render({ row, instrument }) {
    const about = aboutText(instrument);
    const name = nameOf(instrument, row.isin);
    return html`
      <td role="gridcell" class="name">
        <span class="title" lang=${langOf(instrument)} title=${name}>${name}</span>
        <span class="under" title=${about}><${Marks} row=${row} />${about}</span>
      </td>
    `;
  }
}

// The newest price for the eye, its digits in the title.
export function Price({ row }) {
  const { item, change, digits } = row;
  const text = eyeText(item.price, digits);
  return html`<span class=${`price ${change.kind}`} title=${fullTitle(item.price, text)}>${text}</span>`;
}

// The difference and what it is in per cent; both are read out as one.
export function Change({ row, isMixed = false }) {
  const { change, digits } = row;
  const text = differenceText(change, digits);
  const full = differenceText(change, digits, true);
  return html`
    <span class="visually-hidden">${say(KIND_WORDS[change.kind])} </span>
    <span class="difference" title=${full === text ? undefined : full}>${text}</span>${" "}
    <span class="ratio">${ratioText(change)}${isMixed && !row.isAgainstClose ? "*" : ""}</span>
  `;
}
