// A row of the table. Its cells are made once, and written by hand where they say something
// else than before: a window makes no tree of elements for them.

import { phrase, say } from "../language.js";
import { shortText } from "./day/breadth.js";
import { marksOf } from "./day/marks.js";
import { sparkPath } from "./day/trace.js";
import { douse, light } from "./flash.js";
import { clockText, countText, KIND_WORDS, momentText, priceText } from "./format.js";
import { isOther } from "./html.js";
import { aboutText, langOf, nameOf } from "./names.js";

const OF_DAY = phrase("of its day, from {low} to {high}");
const SEEN = phrase("of the newest half hour and since this page opened, from {low} to {high}");
const NO_RANGE = { ends: ["–", ""], place: 0 };

// Give an element these attributes, none where the value is undefined, and a text, if it holds
// nothing else.
function put(element, { text, ...attributes }) {
  for (const name in attributes) {
    const value = attributes[name];
    if (value === undefined) element.removeAttribute(name);
    else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
  }
  if (text === undefined) return;
  const node = element.firstChild;
  if (node === null) element.append(text);
  else if (node.data !== text) node.data = text;
}

const marked = new WeakMap(); // element -> what it says

function mark(element, marks) {
  const said = marks.map(({ kind, text, title }) => [kind, text, title]).join();
  if (said === (marked.get(element) ?? "")) return;
  marked.set(element, said);
  const make = ({ kind, text: textContent, title }) =>
    Object.assign(document.createElement("span"), { className: `mark ${kind}`, textContent, title });
  element.replaceChildren(...marks.map(make));
}

const putSum = (cell, sum, full) => put(cell, { title: sum === null ? undefined : priceText(full), text: shortText(sum) });

// Column -> what its cell is made of, and what writes it.
const CELLS = {
  star: {
    inside: '<button type="button" class="quiet" tabindex="-1"></button>',
    write({ firstChild: button }, { row, isWatched }) {
      const label = say("Watch {name}", { name: nameOf(row.instrument, row.isin) });
      put(button, { "aria-pressed": String(isWatched), "aria-label": label, text: isWatched ? "★" : "☆" });
    },
  },
  name: {
    inside: '<span class="title"></span><span class="under"><span></span><span></span></span>',
    write({ firstChild: name, lastChild: under }, { row }) {
      const title = nameOf(row.instrument, row.isin);
      put(name, { lang: langOf(row.instrument), title, text: title });
      const about = aboutText(row.instrument);
      put(under, { title: about });
      mark(under.firstChild, marksOf(row));
      put(under.lastChild, { text: about });
    },
  },
  isin: {
    kind: "code",
    inside: "<span></span> <span></span>",
    write({ firstChild: isin, lastChild: marks }, { row, hasName }) {
      put(isin, { text: row.isin });
      if (!hasName) mark(marks, marksOf(row));
    },
  },
  price: {
    write(cell, { row: { change, figures } }) {
      put(cell, { class: `price number ${change.kind}`, title: figures.priceTitle, text: figures.price });
    },
  },
  change: {
    inside: '<span class="visually-hidden"></span><span class="difference"></span> <span class="ratio"></span>',
    write(cell, { row: { change, figures, isAgainstClose }, isMixed }) {
      const [word, difference, ratio] = cell.children;
      put(cell, { class: `change number ${change.kind}` });
      put(word, { text: `${say(KIND_WORDS[change.kind])} ` });
      put(difference, { title: figures.differenceTitle, text: figures.difference });
      put(ratio, { text: isMixed && !isAgainstClose ? `${figures.ratio}*` : figures.ratio });
    },
  },
  spark: {
    inside: '<svg viewBox="0 0 960 220" preserveAspectRatio="none" aria-hidden="true"><path /></svg>',
    write({ firstChild: svg }, { row }) {
      put(svg, { class: row.change.kind });
      put(svg.firstChild, { d: sparkPath(row.trace) });
    },
  },
  range: {
    inside:
      '<span class="visually-hidden"></span><i class="rail" aria-hidden="true"></i>' +
      '<span class="ends" aria-hidden="true"><span></span><span></span></span>',
    write(cell, { row }) {
      const [words, rail, ends] = cell.children;
      const { full, ends: [low, high], place } = row.figures.range ?? NO_RANGE;
      const title = full && say(row.day === undefined ? SEEN : OF_DAY, { low: full[0], high: full[1] });
      put(words, { text: title ?? "" });
      put(rail, { class: `rail ${row.change.kind}`, title, hidden: full ? undefined : "" });
      rail.style.setProperty("--at", `${(100 * place).toFixed(1)}%`);
      put(ends, { title });
      put(ends.firstChild, { text: low });
      put(ends.lastChild, { text: high });
    },
  },
  turnover: { kind: "number", write: (cell, { row }) => putSum(cell, row.turnover, row.turnoverText) },
  volume: { kind: "number", write: (cell, { row }) => putSum(cell, row.volume, row.volumeText) },
  trades: {
    kind: "number",
    inside: '<span class="soft"></span><span></span>',
    write({ firstChild: more, lastChild: all }, { row, isNew }) {
      put(more, { text: isNew && row.item.trades ? `+${row.item.trades} ` : "" });
      put(all, { text: row.trades ? countText(row.trades) : "–" });
    },
  },
  time: {
    kind: "number",
    write(cell, { row }) {
      const timeMs = row.item.time / 1000;
      put(cell, { title: momentText(timeMs), text: clockText(timeMs) });
    },
  },
};

const blanks = new WeakMap(); // columns -> a row of them

function blankOf(columns) {
  if (!blanks.has(columns)) {
    const template = document.createElement("template");
    const cell = ({ id }) => `<td role="gridcell" class="${id} ${CELLS[id].kind ?? ""}">${CELLS[id].inside ?? ""}</td>`;
    template.innerHTML = `<tr role="row">${columns.map(cell).join("")}</tr>`;
    blanks.set(columns, template.content.firstChild);
  }
  return blanks.get(columns);
}

// A place in the table: the instrument in it may be another one the next time. `columns` are
// those of a layout (columns.js).
export class TableRow {
  constructor(columns) {
    this.element = blankOf(columns).cloneNode(true);
    this._cells = columns.map(({ id }, place) => [this.element.children[place], CELLS[id].write]);
    this._hasName = columns.some(({ id }) => id === "name");
    this._price = this.element.querySelector(".price");
    this._shown = null;
  }

  // Show a row (row.js), which changes in place. `about` is {index, window: the newest, isMixed,
  // isActive, isSelected, isWatched}.
  show(row, { window, ...about }) {
    const { isin, version, price } = row;
    const isNew = row.window !== null && row.window === window;
    const before = this._shown;
    const shown = { row, version, price, isNew, hasName: this._hasName, ...about };
    if (before !== null && !isOther(shown, before)) return;
    this._shown = shown;
    put(this.element, {
      id: `row-${isin}`,
      "aria-rowindex": String(about.index + 2),
      "aria-selected": String(about.isSelected),
      class: about.isActive ? "active" : "",
    });
    for (const [cell, write] of this._cells) write(cell, shown);
    if (before?.row !== row) douse(this._price);
    else if (isNew && price !== before.price) light(this._price, price > before.price ? "up" : "down");
  }

  remove() {
    douse(this._price);
    this.element.remove();
  }
}
