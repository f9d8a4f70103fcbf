// Where each instrument's tile is. Pure: the arithmetic is d3-hierarchy's squarified treemap.
//
// Calm comes first: sizes change with every trade, places only when the map has become
// wrong by enough. Then tiles change their sizes and keep their neighbours, unless there
// are other instruments than before.

import { hierarchy, treemap, treemapResquarify } from "d3-hierarchy";

import { grouped, sizeOf } from "./groups.js";

const GAP = 1;
const LEAST_AREA = 60; // of a tile, on average: less has no gap around it
const GROUP_GAP = 3;
export const HEAD = 18; // pixels, of a group's name
const HEAD_LEAST = [56, 44]; // of a group that has room for it
const MOST_KEPT = 8; // layouts in a row that keep neighbours: tiles become slender

// By how much of its area the map may be wrong, and for how long. A share says for how
// much of it: 0.05 stands for tiles that are together a twentieth of the map too small.
const PATIENCE = [
  { share: 0.25, ms: 0 },
  { share: 0.05, ms: 10_000 },
  { share: 0.002, ms: 60_000 },
];

export const isLayoutDue = (drift, ageMs) => PATIENCE.some(({ share, ms }) => drift >= share && ageMs >= ms);

export class MapLayout {
  // `kind` of the groups (groups.js), null for none; `width` and `height` in pixels.
  constructor(rows, { kind, hasSums, width, height }) {
    this.hasSums = hasSums;
    this.width = width;
    this.height = height;
    // {isin, x, y, width, height}, of those with a pixel at least, group by group; in it
    // the largest was the first when the map was laid out anew.
    this.tiles = [];
    this.heads = []; // {name, x, y, width, height, head: its name's height, 0 for none}
    this.unseen = 0; // instruments whose tile has no pixel
    this._kept = 0;
    const sized = rows.filter((row) => sizeOf(row, hasSums) > 0);
    this.without = rows.length - sized.length; // instruments without a size
    const leaf = (row) => ({ isin: row.isin, size: sizeOf(row, hasSums) });
    const children =
      kind === null
        ? sized.map(leaf)
        : [...grouped(sized, kind)].map(([name, some]) => ({ name, children: some.map(leaf) }));
    this._root = hierarchy({ children }).sum(({ size }) => size ?? 0);
    this._root.sort((a, b) => b.value - a.value || (idOf(a) < idOf(b) ? -1 : 1));
    this._place();
  }

  // How much of the area belongs elsewhere, 0 to 1: what is missing counts in full.
  drift(rows) {
    let total = 0;
    for (const row of rows) total += sizeOf(row, this.hasSums);
    if (!total) return this._shares.size ? 1 : 0;
    let excess = 0; // sum of what has a greater share than it is drawn with
    for (const row of rows) {
      const share = sizeOf(row, this.hasSums) / total;
      excess += Math.max(0, share - (this._shares.get(row.isin) ?? 0));
    }
    return excess;
  }

  // Follow the sizes; returns whether it could: other instruments need another layout.
  follow(rows) {
    const sizes = new Map();
    for (const row of rows) {
      const size = sizeOf(row, this.hasSums);
      if (size > 0) sizes.set(row.isin, size);
    }
    if (this._kept >= MOST_KEPT || sizes.size !== this._shares.size) return false;
    for (const isin of this._shares.keys()) if (!sizes.has(isin)) return false;
    this._kept += 1;
    this._root.sum(({ isin }) => sizes.get(isin) ?? 0);
    this._place();
    return true;
  }

  _place() {
    const root = this._root;
    const hasRoom = ({ x0, y0, x1, y1 }) => x1 - x0 >= HEAD_LEAST[0] && y1 - y0 >= HEAD_LEAST[1];
    const gap = (node) => {
      const { x0, y0, x1, y1, children } = node;
      if (node.depth === 0 && children[0].children) return GROUP_GAP;
      return ((x1 - x0) * (y1 - y0)) / children.length < LEAST_AREA ? 0 : GAP;
    };
    const isGroup = (node) => node.depth === 1 && node.children !== undefined;
    const total = root.value;
    this._shares = new Map();
    this.tiles = [];
    this.heads = [];
    this.unseen = 0;
    if (!total) return;
    treemap()
      .tile(treemapResquarify)
      .size([this.width, this.height])
      .paddingInner(gap)
      .paddingTop((node) => (isGroup(node) && hasRoom(node) ? HEAD : 0))
      .round(true)(root);
    root.each((node) => {
      const { x0, y0, x1, y1, data } = node;
      const box = { x: x0, y: y0, width: x1 - x0, height: y1 - y0 };
      if (isGroup(node)) this.heads.push({ name: data.name, ...box, head: hasRoom(node) ? HEAD : 0 });
      if (data.isin === undefined) return;
      this._shares.set(data.isin, node.value / total);
      if (box.width > 0 && box.height > 0) this.tiles.push({ isin: data.isin, ...box });
      else this.unseen += 1;
    });
  }
}

const idOf = ({ data }) => data.isin ?? data.name;

const isIn = ({ x, y, width, height }, at) => at.x >= x && at.x < x + width && at.y >= y && at.y < y + height;

// What is at a place: {tile} or {head}, null where nothing is.
export function hit({ tiles, heads }, at) {
  const head = heads.find((box) => isIn({ ...box, height: box.head }, at));
  if (head !== undefined) return { head };
  const tile = tiles.find((box) => isIn(box, at));
  return tile === undefined ? null : { tile };
}
