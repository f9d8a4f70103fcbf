// The rules of the board's views, the map and the charts, in Node; test_board_rules.py runs
// this beside a copy of pages.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { isBare, instrumentOf, viewOf, withInstrument, withView } from "./static/board/address.js";
import { drawnFrom } from "./static/board/candles/points.js";
import { pageOf } from "./static/board/grid/pages.js";
import { grouped, groupKind, OTHERS, sizeOf, summary } from "./static/board/map/groups.js";
import { hit, isLayoutDue, MapLayout } from "./static/board/map/layout.js";
import { contrast, MOST_STEP, palette, rgbOf, stepOf, stepText } from "./static/board/map/palette.js";
import { tileAfter } from "./static/board/map/steps.js";

const TABLE = { name: "table", group: null };

// A row as row.js has it, as far as the map asks.
const row = (isin, turnover, { sector, market, trades = 0, kind = "" } = {}) => ({
  isin,
  turnover,
  trades,
  change: { kind },
  instrument: { sector, market, name: isin },
});

// A market of unlike sizes: a few large instruments, many small ones.
const market = (count, sectors) =>
  Array.from({ length: count }, (_, n) => row(`I${n}`, 1e9 / (n + 1), { sector: `S${(n * n) % sectors}` }));

const area = ({ width, height }) => width * height;

test("an address names a view, a group of the map, or an instrument", () => {
  for (const hash of ["", "#token=a.b", "#/", "#/table"]) assert.deepEqual(viewOf(hash), TABLE);
  assert.deepEqual(["", "#token=a.b", "#/", "#/table"].map(isBare), [true, true, true, false]);
  assert.deepEqual(viewOf("#/map&token=a.b"), { name: "map", group: null });
  assert.deepEqual(viewOf("#token=a.b&/charts"), { name: "charts", group: null });
  assert.equal(instrumentOf("#/map"), null);
  // Codes are in capitals, views are not.
  assert.equal(viewOf("#/MAP"), null);
  assert.equal(instrumentOf("#/MAP"), "MAP");
  for (const group of ["반도체", "a/b & c", "100%", "map"]) {
    const hash = withView("#token=a.b", { name: "map", group });
    assert.deepEqual(viewOf(hash), { name: "map", group });
    assert.ok(hash.endsWith("&token=a.b"));
  }
  assert.deepEqual(viewOf("#/map/%"), { name: "map", group: "%" });
  assert.equal(withView("#/map&token=a.b", TABLE), "#token=a.b");
  assert.equal(withView("#/005930", { name: "charts", group: null }), "#/charts");
  assert.equal(withInstrument("#/map/x&token=a.b", "KR7005930003"), "#/KR7005930003&token=a.b");
});

test("instruments are grouped by sector, else by market, and one that is in none is not lost", () => {
  const rows = [row("A", 5, { sector: "s", kind: "up" }), row("B", 3, { market: "m", kind: "down" }), row("C", null)];
  assert.equal(groupKind(rows), "sector");
  assert.deepEqual([...grouped(rows, "sector").keys()], ["s", OTHERS]);
  assert.equal(groupKind(rows.slice(1)), "market");
  assert.equal(groupKind(rows.slice(2)), null);
  assert.deepEqual(summary("x", rows, true), { name: "x", instruments: 3, up: 1, down: 1, same: 1, size: 8 });
  assert.equal(sizeOf(row("A", null, { trades: 7 }), false), 7);
  assert.equal(sizeOf(row("A", null), false), 1);
});

test("tiles are as large as their instruments, lie in their groups and on nobody else", () => {
  const rows = market(400, 7);
  const total = rows.reduce((sum, { turnover }) => sum + turnover, 0);
  const layout = new MapLayout(rows, { kind: "sector", hasSums: true, width: 1200, height: 600 });
  assert.equal(layout.tiles.length + layout.unseen, 400);
  assert.equal(layout.heads.length, 4);
  const taken = new Uint8Array(1200 * 600);
  for (const { isin, x, y, width, height } of layout.tiles) {
    const head = layout.heads.find(({ name }) => name === rows[Number(isin.slice(1))].instrument.sector);
    assert.ok(x >= head.x && x + width <= head.x + head.width);
    assert.ok(y >= head.y + head.head && y + height <= head.y + head.height);
    for (let line = y; line < y + height; line += 1) {
      for (let place = x; place < x + width; place += 1) {
        assert.equal(taken[line * 1200 + place], 0);
        taken[line * 1200 + place] = 1;
      }
    }
  }
  // What names and gaps take is missing everywhere: the largest tells the scale.
  const largest = layout.tiles.find(({ isin }) => isin === "I0");
  for (const tile of layout.tiles.filter((one) => area(one) > 2_000)) {
    const wanted = rows[Number(tile.isin.slice(1))].turnover / total;
    assert.ok(Math.abs(area(tile) / (1200 * 600) / wanted - 1) < 0.35, `${tile.isin}`);
  }
  assert.equal(hit(layout, { x: largest.x + 1, y: largest.y + 1 }).tile, largest);
  assert.equal(hit(layout, { x: layout.heads[0].x, y: layout.heads[0].y }).head, layout.heads[0]);
  assert.equal(hit(layout, { x: 5_000, y: 0 }), null);
});

test("without groups there are tiles only; what has no size is counted", () => {
  const rows = [row("A", 10), row("B", 0), row("C", null)];
  const layout = new MapLayout(rows, { kind: null, hasSums: true, width: 100, height: 100 });
  assert.deepEqual(layout.tiles, [{ isin: "A", x: 0, y: 0, width: 100, height: 100 }]);
  assert.deepEqual([layout.without, layout.heads], [2, []]);
  const empty = new MapLayout([row("B", 0)], { kind: null, hasSums: true, width: 100, height: 100 });
  assert.deepEqual([empty.tiles, empty.without, empty.drift([row("B", 0)])], [[], 1, 0]);
  assert.equal(empty.drift(rows), 1);
});

test("the map keeps still until it is wrong by enough, and then keeps neighbours", () => {
  const rows = market(200, 5);
  const layout = new MapLayout(rows, { kind: "sector", hasSums: true, width: 900, height: 500 });
  const order = () => layout.tiles.map(({ isin }) => isin);
  const before = layout.tiles;
  assert.equal(layout.drift(rows), 0);
  const total = rows.reduce((sum, { turnover }) => sum + turnover, 0);
  const more = [row("I9", rows[9].turnover + total / 9, { sector: "S1" })];
  const moved = rows.map((one) => more.find(({ isin }) => isin === one.isin) ?? one);
  const drift = layout.drift(moved);
  assert.ok(Math.abs(drift - 0.1) < 0.02, `${drift}`);
  assert.deepEqual([isLayoutDue(drift, 9_999), isLayoutDue(drift, 10_000)], [false, true]);
  assert.deepEqual([isLayoutDue(0.3, 0), isLayoutDue(0.01, 59_000), isLayoutDue(0, 1e9)], [true, false, false]);
  assert.deepEqual(layout.tiles, before);
  const orderBefore = order();
  assert.equal(layout.follow(moved), true);
  assert.deepEqual(order(), orderBefore);
  assert.ok(layout.drift(moved) < 1e-9);
  // Other instruments need another layout, and so do tiles that have become slender.
  assert.equal(layout.follow(moved.slice(1)), false);
  assert.equal(layout.follow([...moved.slice(1), row("X", 5)]), false);
  let followed = 0;
  while (layout.follow(rows)) followed += 1;
  assert.ok(followed < 20);
});

test("arrows lead to every tile and never off the map", () => {
  const { tiles } = new MapLayout(market(300, 6), { kind: "sector", hasSums: true, width: 1000, height: 600 });
  const reached = new Set([0]);
  for (const place of reached) {
    for (const key of ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"]) reached.add(tileAfter(key, place, tiles));
  }
  assert.equal(reached.size, tiles.length);
  const boxes = [
    { x: 0, y: 0, width: 10, height: 20 },
    { x: 11, y: 0, width: 10, height: 9 },
    { x: 11, y: 10, width: 10, height: 10 },
  ];
  const path = ["ArrowRight", "ArrowUp", "ArrowRight", "ArrowLeft", "End", "Home"];
  let place = 0;
  assert.deepEqual(path.map((key) => (place = tileAfter(key, place, boxes))), [2, 1, 1, 0, 2, 0]);
  assert.equal(tileAfter("x", 0, boxes), null);
});

test("what is written on a tile can be read, in every theme and colour", () => {
  const css = readFileSync("./static/base.css", "utf-8");
  const token = (name, scheme) => {
    const [, ...pair] = new RegExp(`--${name}: light-dark\\((#\\w+), (#\\w+)\\)`).exec(css);
    return [1, 3, 5].map((at) => parseInt(pair[scheme].slice(at, at + 2), 16));
  };
  for (const scheme of [0, 1]) {
    for (const [up, down] of [["red", "blue"], ["green", "red"]]) {
      const steps = palette({ up: token(up, scheme), down: token(down, scheme), none: token("line", scheme) });
      assert.equal(steps.size, 2 * MOST_STEP + 1);
      for (const { back, ink } of steps.values()) assert.ok(contrast(rgbOf(back), rgbOf(ink)) >= 4.5);
      // Two steps beside each other can be told apart, and up from down.
      assert.ok(new Set([...steps.values()].map(({ back }) => back)).size === steps.size);
    }
  }
  const stepsOf = [0, null, 0.001, 0.005, 0.0099, 0.03, 0.05, 0.3, -0.02].map((ratio) => stepOf({ ratio }));
  assert.deepEqual(stepsOf, [0, 0, 1, 2, 2, 5, 6, 6, -4]);
  assert.deepEqual([0, 1, -2, 6].map(stepText), [
    "unchanged",
    "up, less than 0.5 %",
    "down 0.5 to 1 %",
    "up 5 % or more",
  ]);
});

test("charts are in an order that no trade changes, nine at a time", () => {
  const rows = Array.from({ length: 20 }, (_, n) => row(`I${String(n).padStart(2, "0")}`, n));
  const names = ({ rows: shown }) => shown.map(({ isin }) => isin).join(" ");
  const first = pageOf([...rows].reverse(), 0);
  assert.equal(names(first), "I00 I01 I02 I03 I04 I05 I06 I07 I08");
  const last = pageOf(rows, 7);
  assert.deepEqual([names(last), last.page, last.first, last.count], ["I18 I19", 2, 18, 20]);
  assert.deepEqual(pageOf([], 3), { rows: [], page: 0, first: 0, count: 0 });
});

test("of a chart only its end is drawn over", () => {
  const points = [1, 2, 3].map((time) => ({ time, value: time }));
  const newest = [...points.slice(0, 2), { time: 3, value: 9 }];
  assert.equal(drawnFrom([], points), null);
  assert.equal(drawnFrom(points, points), 3);
  assert.equal(drawnFrom(points, newest), 2);
  assert.equal(drawnFrom(points, [...newest, { time: 4, value: 1 }]), 2);
  assert.equal(drawnFrom(points, points.slice(1)), null);
  assert.equal(drawnFrom(points, [{ time: 1, value: 5 }, ...points.slice(1)]), null);
  assert.equal(drawnFrom(points, [...points.slice(0, 2), { time: 4, value: 1 }]), null);
});
