// Paints the map on a canvas. Of a window it repaints only tiles that look different than
// before: their places stay (layout.js), and a colour is one of a few (palette.js).

import { ratioText } from "../format.js";
import { nameOf } from "../names.js";
import { groupName } from "./groups.js";
import { HEAD } from "./layout.js";
import { stepOf } from "./palette.js";

const FAMILY = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans KR", sans-serif';
const [LEAST_PX, MOST_PX] = [10, 22]; // of letters
const MOST_DENSITY = 2; // canvas pixels for one of the page
const EDGE = 4;
const HEAD_PX = 11;
const LEAST_LETTERS = 2;
const FIGURE_FROM = 0.1; // below a tile's middle, in sizes of its letters: the name ends above

export class MapPainter {
  constructor(canvas) {
    this._canvas = canvas;
    this._paper = canvas.getContext("2d", { alpha: false });
    this._layout = null;
    this._steps = []; // of each tile, as it was painted
    this._figures = [];
    this._labels = []; // of each tile: where and how it is written, null without room
    this._names = [];
  }

  // `steps` is palette.js's; the others are colours as text.
  setColours({ steps, gap, head, soft }) {
    this._colours = { steps, gap, head, soft };
    this._layout = null;
  }

  // Paint what has changed; `rowOf(isin)` is the store's row. Returns how many tiles.
  //
  // Backgrounds first, then what is written, size by size: setting a font costs about as
  // much as writing with it.
  paint(layout, rowOf) {
    if (layout !== this._layout || layout.tiles !== this._tiles) this._begin(layout);
    const paper = this._paper;
    const written = new Map(); // size of letters -> what is to be written
    let painted = 0;
    layout.tiles.forEach((tile, place) => {
      const row = rowOf(tile.isin);
      const step = row === undefined ? 0 : stepOf(row.change);
      const name = nameOf(row?.instrument, row?.instrument?.code ?? tile.isin);
      const isNamed = name === this._names[place];
      if (!isNamed) {
        this._names[place] = name;
        this._labels[place] = this._label(tile, name);
      }
      const label = this._labels[place];
      const figure = label?.hasFigure && row !== undefined ? ratioText(row.change) : "";
      const isFilled = isNamed && step === this._steps[place];
      if (isFilled && figure === this._figures[place]) return;
      // The name stays where nothing but the figure below it is another one.
      const isBelow = isFilled && figure !== "" && this._figures[place] !== "";
      this._steps[place] = step;
      this._figures[place] = figure;
      painted += 1;
      const { back, ink } = this._colours.steps.get(step);
      const top = isBelow ? tile.y + tile.height / 2 + label.px * FIGURE_FROM : tile.y;
      paper.fillStyle = back;
      paper.fillRect(tile.x, top, tile.width, tile.y + tile.height - top);
      if (label === null) return;
      if (!written.has(label.px)) written.set(label.px, []);
      written.get(label.px).push({ tile, text: isBelow ? "" : label.text, figure, ink });
    });
    for (const [px, texts] of written) this._write(px, texts);
    return painted;
  }

  _begin(layout) {
    this._layout = layout;
    this._tiles = layout.tiles;
    this._steps = [];
    this._figures = [];
    this._names = [];
    const { width, height } = layout;
    const density = Math.min(MOST_DENSITY, devicePixelRatio || 1);
    const [wide, high] = [Math.round(width * density), Math.round(height * density)];
    if (this._canvas.width !== wide || this._canvas.height !== high) {
      Object.assign(this._canvas, { width: wide, height: high });
    }
    const paper = this._paper;
    paper.setTransform(density, 0, 0, density, 0, 0);
    paper.fillStyle = this._colours.gap;
    paper.fillRect(0, 0, width, height);
    for (const head of layout.heads) if (head.head) this._head(head);
  }

  _head({ name, x, y, width }) {
    const paper = this._paper;
    paper.fillStyle = this._colours.head;
    paper.fillRect(x, y, width, HEAD - 1);
    paper.fillStyle = this._colours.soft;
    paper.font = `600 ${HEAD_PX}px ${FAMILY}`;
    paper.textAlign = "left";
    paper.textBaseline = "middle";
    paper.fillText(this._fitted(groupName(name), width - 2 * EDGE), x + EDGE, y + HEAD / 2);
  }

  _write(px, texts) {
    const paper = this._paper;
    paper.textAlign = "center";
    paper.textBaseline = "middle";
    paper.font = `600 ${px}px ${FAMILY}`;
    for (const { tile, text, figure, ink } of texts) {
      if (text === "") continue;
      const middle = tile.y + tile.height / 2;
      paper.fillStyle = ink;
      paper.fillText(text, tile.x + tile.width / 2, figure ? middle - px * 0.6 : middle);
    }
    paper.font = `${Math.max(LEAST_PX, Math.round(px * 0.85))}px ${FAMILY}`;
    for (const { tile, figure, ink } of texts) {
      if (figure === "") continue;
      paper.fillStyle = ink;
      paper.fillText(figure, tile.x + tile.width / 2, tile.y + tile.height / 2 + px * 0.65, tile.width);
    }
  }

  // How a tile is written on: its name as far as it fits, and a figure if there is room.
  _label({ width, height }, name) {
    if (width < 3 * LEAST_PX || height < LEAST_PX + EDGE) return null;
    const px = Math.round(Math.min(MOST_PX, Math.max(LEAST_PX, Math.sqrt(width * height) / 7)));
    if (height < px + EDGE) return null;
    this._paper.font = `600 ${px}px ${FAMILY}`;
    const text = this._fitted(groupName(name), width - EDGE);
    if (text === "") return null;
    return { px, text, hasFigure: height >= 2.6 * px && width >= 4 * px };
  }

  // A text as far as there is room; "" for less than two letters of it.
  _fitted(text, room) {
    const width = this._paper.measureText(text).width;
    if (width <= room) return text;
    const letters = Array.from(text);
    let count = Math.min(letters.length - 1, Math.floor((letters.length * room) / width));
    const cut = () => `${letters.slice(0, count).join("").trimEnd()}…`;
    while (count >= LEAST_LETTERS && this._paper.measureText(cut()).width > room) count -= 1;
    return count < LEAST_LETTERS ? "" : cut();
  }
}
