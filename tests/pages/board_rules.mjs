// The rules of the market board, in Node; test_board_rules.py runs this beside a copy of
// pages.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { instrumentOf, withInstrument } from "./static/board/address.js";
import { isWanted, sectorsOf } from "./static/board/choice/filters.js";
import {
  activeList,
  exportText,
  importText,
  listsText,
  nameProblem,
  parseLists,
  withList,
  withoutActive,
} from "./static/board/choice/lists.js";
import { amountText, barOfDay, barText, candleOf, digitsOf, kindOf } from "./static/board/candles/bars.js";
import { choiceText, layoutFor, moved, orderAmong, parseChoice, widest } from "./static/board/columns.js";
import { basesOf, levelChange, levelOf, levelText, weightOf } from "./static/board/day/board_index.js";
import { glance, shortText } from "./static/board/day/breadth.js";
import { dailyLimits, limitOf } from "./static/board/day/limits.js";
import { placeIn, rangeOf } from "./static/board/day/range.js";
import { sparkPath, Trace } from "./static/board/day/trace.js";
import { changeOf, differenceText, eyeText, fullTitle, priceText, ratioText, widthOf } from "./static/board/format.js";
import { judge, silenceMs } from "./static/board/freshness.js";
import { chartPoints, merged, newPoint, withLog } from "./static/board/history.js";
import { Line } from "./static/board/line.js";
import { dayMovers } from "./static/board/movers/day.js";
import { readBursts, readMoves, recent } from "./static/board/movers/recent.js";
import { langOf, nameOf } from "./static/board/names.js";
import { comparator, nextOrder } from "./static/board/order.js";
import { consonants } from "./static/board/hangul.js";
import { matches, searchText, words } from "./static/board/search.js";
import { madeMs, Staleness, summary } from "./static/board/staleness.js";
import { Store } from "./static/board/store.js";
import { rowAfter, scrollTopFor, visibleRange } from "./static/board/virtual.js";
import { parseWatchList, toggled } from "./static/board/watchlist.js";
import { setLanguage } from "./static/language.js";
import { isOlder, isOlderBar, readMessage } from "./static/tick.js";

const SAMSUNG = "KR7005930003";
const HYNIX = "KR7000660001";
const NAVER = "KR7035420009";

const item = (isin, price, seq = 1, more = {}) => ({
  isin,
  price,
  size: "1",
  seq,
  time: seq * 1_000_000,
  trades: 1,
  ...more,
});

test("a price keeps its digits through reading and writing", () => {
  const read = readMessage('{"message":"\\"price\\":1","data":[{"price":0.30,"size": 7,"seq":2}]}');
  assert.deepEqual(read, { message: '"price":1', data: [{ price: "0.30", size: "7", seq: 2 }] });
  assert.equal(priceText("0.30"), "0.30");
  assert.equal(priceText("1234567.5000"), "1,234,567.5000");
  assert.equal(priceText("999"), "999");
  assert.equal(priceText("-1000"), "-1,000");
});

test("every number of a message keeps its text, whichever way it is read", () => {
  const numbers = [
    ..."0 -0 0.5 0.30 0.000001 0.0000001 1e5 1E-7 100 100.10 -3.25 5.0".split(" "),
    ..."123456789012345 1234567890123456 12345678901234.5 123456789012.345 1234567890.123456".split(" "),
    ..."0.12345678901234 0.1234567890123456 9007199254740993 10000000000000000000000".split(" "),
  ];
  for (const price of numbers) {
    for (const size of ["40", ...numbers]) {
      const { data } = readMessage(`{"type":"update","data":[{"price":${price},"size":${size},"more":1.50}]}`);
      assert.deepEqual(data, [{ price, size, more: 1.5 }]);
    }
    const sums = { volume: price, value: "7", high: price, low: "1" };
    const written = Object.entries(sums).map(([name, value]) => `"${name}":${value}`);
    const { data } = readMessage(`{"type":"update","data":[{"price":1,"size":2,"trades":3,${written}}]}`);
    assert.deepEqual(data, [{ price: "1", size: "2", trades: 3, ...sums }]);
  }
  assert.deepEqual(readMessage('{"n":1,"data":[{"isin":"A"}]}').data, [{ isin: "A" }]);
});

test("a group keeps its digits, fields of trades stay numbers", () => {
  const head = '{"type":"update","groups":[{"group":"a,\\"data\\":[","volume":0.10,';
  const group = '"value":12345678901234567890.5,"mean_change_pct":-0.5000,"trades":7}]';
  const read = readMessage(`${head}${group},"data":[{"price":1.0,"size":1,"more":3}]}`);
  const [figures] = read.groups;
  assert.deepEqual(
    [figures.group, figures.volume, figures.value, figures.mean_change_pct, figures.trades],
    ['a,"data":[', "0.10", "12345678901234567890.5", "-0.5000", 7],
  );
  assert.deepEqual(read.data, [{ price: "1.0", size: "1", more: 3 }]);
  assert.equal(readMessage('{"groups":[{"mean_change_pct":null}],"data":[]}').groups[0].mean_change_pct, null);
});

test("a change says its way by a sign, not by colour alone", () => {
  const up = changeOf("1010", "1000");
  assert.equal(differenceText(up, 0), "▲ 10");
  assert.equal(ratioText(up), "+1.00%");
  const down = changeOf("0.30", "0.40");
  assert.equal(differenceText(down, 2), "▼ 0.10");
  assert.equal(ratioText(down), "−25.00%");
  assert.equal(differenceText(changeOf("5", "5"), 0), "0");
  assert.equal(differenceText(changeOf("5", null), 0), "–");
  assert.equal(changeOf("5", 0).ratio, null);
});

test("an instrument is found by name, code, ISIN, market, sector and first consonants", () => {
  const instrument = { name: "삼성전자", code: "005930", market: "KOSPI", sector: "반도체" };
  const text = searchText(SAMSUNG, instrument);
  const findable = ["삼성", "전자", "005930", "kr7005930003", "ㅅㅅ", "삼성 0059", "  "];
  for (const found of [...findable, "kospi", "반도체", "ㅂㄷㅊ", "kospi 삼성"]) {
    assert.ok(matches(text, words(found)), found);
  }
  assert.ok(!matches(text, words("삼성 하이닉스")));
  assert.equal(consonants("LG전자 1"), "LGㅈㅈ 1");
  // A name typed on a Mac comes decomposed.
  assert.ok(matches(text, words("삼성전자".normalize("NFD"))));
  assert.ok(matches(searchText(HYNIX, null), words("0660")));
});

test("an instrument is found while its name is being typed, key by key", () => {
  const text = searchText(SAMSUNG, { name: "삼성전자" });
  for (const found of "ㅅ 사 삼 삼ㅅ 삼서 삼성 삼성ㅈ 삼성저 삼성전 삼성전ㅈ 삼성전자 ㅅㅅ전".split(" ")) {
    assert.ok(matches(text, words(found)), found);
  }
  // The ㄴ of 전 is the final of its own syllable, that of 선 begins the next one.
  const nara = searchText(SAMSUNG, { name: "서나라" });
  assert.ok(matches(nara, words("선")) && matches(nara, words("서나")));
  for (const lost of "삼상 성삼 삼성선 삼성전작 삼성(".split(" ")) assert.ok(!matches(text, words(lost)), lost);
  assert.ok(matches(searchText("A", { name: "우리(주)" }), words("우리(주")));
});

test("an address names an instrument beside a token", () => {
  assert.equal(instrumentOf(""), null);
  assert.equal(instrumentOf("#token=a.b"), null);
  assert.equal(instrumentOf("#/"), null);
  assert.equal(instrumentOf("#/005930&token=a.b"), "005930");
  assert.equal(instrumentOf("#token=a.b&/005930"), "005930");
  assert.equal(instrumentOf("#/%3Cb%3E"), "<b>");
  assert.equal(instrumentOf("#/%"), "%");
  assert.equal(withInstrument("#token=a.b", SAMSUNG), `#/${SAMSUNG}&token=a.b`);
  assert.equal(withInstrument(`#/005930&token=a.b`, null), "#token=a.b");
  assert.equal(withInstrument("", SAMSUNG), `#/${SAMSUNG}`);
  assert.equal(withInstrument(`#/${SAMSUNG}`, null), "");
  const store = new Store();
  assert.equal(store.isinOf("005930"), null);
  store.setInstruments([{ isin: SAMSUNG, code: "005930" }, { isin: HYNIX, code: null }]);
  assert.equal(store.isinOf("005930"), SAMSUNG);
  assert.equal(store.isinOf(NAVER.toLowerCase()), NAVER);
  assert.equal(store.isinOf("nothing"), null);
});

test("columns that have no room are left out, the instrument never", () => {
  const ids = (...question) => layoutFor(...question).columns.map(({ id }) => id).join(" ");
  const sums = { hasSums: true };
  assert.equal(ids(100, true, sums), "star name isin price change spark range turnover volume trades time");
  assert.equal(ids(87, true, sums), "star name price change spark range turnover volume trades time");
  assert.equal(ids(60, true, sums), "star name price change spark turnover");
  assert.equal(ids(60, true), "star name price change spark trades");
  assert.equal(ids(20, true, sums), "star name price change");
  assert.equal(ids(20, false), "star isin price change");
  assert.equal(layoutFor(60, true), layoutFor(61, true));
});

test("columns are wide enough for the figures in view, and others make room for them", () => {
  const widths = { price: 14.2, difference: 11, ratio: 7, ends: 26 };
  const wide = layoutFor(80, true, { widths });
  const remOf = (layout, id) => layout.columns.find((column) => column.id === id)?.rem;
  const usual = layoutFor(80, true, { widths: { price: 6.55, difference: 7.55, ratio: 6.55, ends: 13 } });
  assert.equal(usual, layoutFor(80, true));
  assert.deepEqual(["price", "change"].map((id) => [remOf(usual, id), remOf(wide, id).toFixed(1)]), [[7.5, "11.0"], [13, "14.1"]]);
  assert.deepEqual([remOf(usual, "time"), remOf(wide, "time"), wide.isLong, usual.isLong], [7.8, undefined, false, false]);
  const tall = [7, 8, 14].map((price) => layoutFor(24, true, { widths: { ...widths, price } }));
  assert.deepEqual(tall.map((layout) => [remOf(layout, "price").toFixed(1), remOf(layout, "change").toFixed(1), layout.isLong]), [["6.0", "6.8", false], ["6.0", "6.8", true], ["9.0", "6.8", true]]);
  assert.equal(widest(widths, { ...widths, price: 3 }), widths);
  assert.deepEqual(widest(widths, { price: 15, difference: 1, ratio: 1, ends: 1 }), { ...widths, price: 15 });
});

test("a price for the eye is without zeros that say nothing", () => {
  assert.equal(eyeText("97123.45000000"), "97,123.45");
  assert.equal(eyeText("2500.00000000"), "2,500.00");
  assert.equal(eyeText("12.50"), "12.50");
  assert.equal(eyeText("0.00000846"), "0.0₅846");
  assert.equal(eyeText("0.0008"), "0.0008");
  assert.equal(eyeText("0.0000000000001"), "0.0₁₂1");
  assert.equal(eyeText("0"), "0");
  assert.equal(eyeText("97123.45000000", 4), "97,123.4500");
  assert.equal(eyeText("1234.123456789012345678"), "1,234.123456789…");
  assert.equal(eyeText("1234567890123456789.5"), "1,234,567,890,123,456,789…");
  assert.equal(fullTitle("12.5", eyeText("12.5")), undefined);
  assert.equal(fullTitle("1.5000", "1.50"), "1.5000");
  assert.deepEqual(["1,234.5", "▲ 7"].map(widthOf), [6.1, 3]);
  const rise = (price, close, digits, isFull) => differenceText(changeOf(price, close), digits, isFull);
  assert.equal(rise("97123.45678901", "95123.12345678", 8), "▲ 2,000.33");
  assert.equal(rise("97123.45678901", "95123.12345678", 8, true), "▲ 2,000.33333223");
  assert.equal(rise("1234567891.10", "1204567000.00", 2), "▲ 30,000,891");
  assert.equal(rise("0.00000850", "0.00000812", 8), "▲ 0.0₆38");
  assert.equal(rise("5.00000000", "5", 8), "0.00");
  const store = new Store();
  store.put(item("A", "1.23450000", 1), null);
  store.put(item("A", "1.25000000", 2), 2_000);
  assert.equal(eyeText(store.all[0].item.price, store.all[0].digits), "1.2500");
});

test("an instrument has its English name in English, where the table has one", () => {
  const named = { name: "삼성전자", english_name: "Samsung Electronics" };
  assert.deepEqual([nameOf(named, "A"), langOf(named)], ["Samsung Electronics", "en"]);
  assert.deepEqual([nameOf({ name: "삼성전자" }, "A"), langOf(null), nameOf(null, "A")], ["삼성전자", "ko", "A"]);
  setLanguage("ko");
  assert.equal(nameOf(named, "A"), "삼성전자");
  setLanguage("en");
  assert.ok(matches(searchText("A", named), words("samsung")));
});

test("rows are in an order whose column is there", () => {
  const byTurnover = { column: "turnover", direction: "descending" };
  const byTrades = { column: "trades", direction: "ascending" };
  const sums = { hasSums: true };
  assert.equal(orderAmong(layoutFor(60, true, sums), byTurnover), byTurnover);
  assert.equal(orderAmong(layoutFor(60, true), byTrades), byTrades);
  assert.equal(orderAmong(layoutFor(60, true), byTurnover).column, "trades");
  assert.equal(orderAmong(layoutFor(60, true, sums), byTrades).column, "turnover");
  const byChange = { column: "change", direction: "descending" };
  assert.deepEqual(orderAmong(layoutFor(20, true), byTrades), byChange);
  assert.deepEqual(orderAmong(layoutFor(20, true), { column: "time", direction: "ascending" }), byChange);
});

test("columns are those a visitor chose, in that order, whatever the browser has kept", () => {
  const usual = parseChoice(null);
  assert.deepEqual(parseChoice("nonsense"), usual);
  assert.deepEqual(parseChoice('{"order":7,"hidden":["price","x"],"isDense":"yes"}'), usual);
  const order = moved(usual.order, "change", -1);
  assert.deepEqual(order.slice(0, 3), ["isin", "change", "price"]);
  assert.equal(moved(order, "isin", -1), order);
  assert.equal(moved(order, "time", 1), order);
  const choice = parseChoice(choiceText({ order, hidden: new Set(["spark", "isin"]), isDense: true }));
  const { columns, isDense } = layoutFor(100, true, { choice });
  assert.deepEqual(columns.map(({ id }) => id), ["star", "name", "change", "price", "range", "trades", "time"]);
  assert.ok(isDense);
});

test("the day's limits are those of the simulated market", () => {
  const limits = JSON.parse(readFileSync(new URL("./limits.json", import.meta.url), "utf-8"));
  assert.ok(limits.length > 1000);
  for (const [close, lowest, highest] of limits) assert.deepEqual(dailyLimits(close), [lowest, highest]);
});

test("a price at a limit is marked where the exchange's steps hold", () => {
  const instrument = { prev_close: "10000", tick_table: "krx", market: "KOSPI" };
  assert.equal(limitOf(instrument, 13_000), "upper");
  assert.equal(limitOf(instrument, 12_990), null);
  assert.equal(limitOf(instrument, 7_000), "lower");
  assert.equal(limitOf({ ...instrument, market: "KONEX" }, 11_500), "upper");
  assert.equal(limitOf({ ...instrument, tick_table: null }, 13_000), null);
  assert.equal(limitOf({ ...instrument, prev_close: null }, 13_000), null);
  assert.equal(limitOf(null, 13_000), null);
});

const MINUTE_MS = 60_000;

test("how a price went is its range and a line over the time it is of", () => {
  const trace = new Trace();
  assert.equal(sparkPath(trace), "");
  trace.add(2_000, 100);
  assert.equal(placeIn(trace, 100), null);
  trace.add(3_000, NaN);
  trace.add(4_000, 200);
  assert.equal(placeIn(trace, 150), 0.5);
  assert.equal(sparkPath(trace), "M0,200L960,20");
  trace.add(10_000, 150);
  assert.equal(sparkPath(trace), "M0,200L240,20L960,110");
});

test("of minutes that are over one place stays, and half an hour of them", () => {
  const trace = new Trace();
  for (let timeMs = 2_000; timeMs <= 5 * MINUTE_MS; timeMs += 2_000) {
    trace.add(timeMs, timeMs);
    assert.ok(trace.times.length <= 60);
  }
  assert.deepEqual(trace.times.slice(0, 3), [1, 2, 3].map((minute) => minute * MINUTE_MS));
  assert.deepEqual(trace.times.slice(-30), Array.from({ length: 30 }, (_, place) => 242_000 + 2_000 * place));
  for (let timeMs = 302_000; timeMs <= 100 * MINUTE_MS; timeMs += 2_000) trace.add(timeMs, 1);
  assert.equal(trace.times.at(-1) - trace.times[0], 30 * MINUTE_MS);
  assert.ok(trace.times.length >= 31 && trace.times.length <= 60);
  assert.equal(trace.low, 1);
});

test("closes of minutes are where nothing is known, before and between what was seen", () => {
  const trace = new Trace();
  trace.add(3 * MINUTE_MS - 1_000, 30);
  trace.add(6 * MINUTE_MS + 2_000, 60);
  trace.fill(6 * MINUTE_MS, [11, null, 3, 41, null, 61]);
  assert.deepEqual(trace.prices, [11, 30, 41, 61, 60]);
  assert.deepEqual(trace.times.map((time) => Math.ceil(time / MINUTE_MS)), [1, 3, 4, 6, 7]);
  assert.deepEqual([trace.low, trace.high], [11, 61]);
  trace.fill(6 * MINUTE_MS, [9, 9]);
  assert.deepEqual(trace.prices, [11, 30, 41, 9, 61, 60]);
  const empty = new Trace();
  empty.fill(2 * MINUTE_MS, [1, 2]);
  assert.equal(sparkPath(empty), "M0,200L960,20");
});

test("a time that is ahead of the stream's is of the past all the same", () => {
  const trace = new Trace();
  trace.add(9_000_000, 5);
  trace.add(8_000, 6);
  trace.add(8_000, 7);
  assert.deepEqual([trace.times, trace.prices], [[8_000], [7]]);
});

test("trends reach their rows, whichever come first", () => {
  const trends = { end: 2 * MINUTE_MS, data: [{ isin: "A", closes: [5, 6] }, { isin: "B", closes: [7] }] };
  const store = new Store();
  store.put(item("A", "8", 125), null);
  const { version } = store.rows.get("A");
  store.setTrends(trends);
  store.put(item("B", "9", 125), null);
  assert.deepEqual(store.all.map(({ trace }) => trace.prices), [[5, 6, 8], [7, 9]]);
  assert.ok(store.rows.get("A").version > version);
  store.clear();
  store.put(item("A", "8", 125), null);
  assert.deepEqual(store.rows.get("A").trace.prices, [8]);
});

test("what was touched within a window widens range and line; late trades, the range alone", () => {
  const trace = new Trace();
  trace.add(2_000, 100);
  trace.add(4_000, 100, 200, 100);
  assert.deepEqual([trace.low, trace.high], [100, 200]);
  assert.equal(sparkPath(trace), "M0,200L960,20V200V200");
  trace.widen(300, 50);
  assert.deepEqual([trace.low, trace.high, trace.prices.length], [50, 300, 2]);
  const store = new Store();
  store.put(item("A", "2", 1, { trades: 3, high: "4", low: "2" }), 2_000);
  const [row] = store.all;
  const late = { trades: 1, volume: "5", value: "2.5", high: "0.5", low: "0.5" };
  store.put(item("A", "2", 1, late), 4_000);
  assert.deepEqual([row.trace.low, row.trace.high, row.trace.prices], [0.5, 4, [2]]);
  assert.deepEqual([row.price, row.trades, row.window], [2, 4, 4_000]);
});

test("a price that does not count for the range moves the line, and widens no range", () => {
  const store = new Store();
  store.put(item("A", "9", 1, { trades: 0, updates: "last,volume" }), null);
  store.put(item("A", "8", 2, { trades: 2, volume: "5", value: "40" }), 2_000);
  store.put(item("A", "8", 2, { trades: 1, volume: "1", value: "2" }), 4_000);
  const [row] = store.all;
  assert.deepEqual([row.trace.low, row.trace.high, placeIn(row.trace, 8)], [Infinity, -Infinity, null]);
  assert.deepEqual([row.price, row.trades, row.trace.prices], [8, 3, [9, 8]]);
  assert.equal(sparkPath(row.trace), "M0,20L960,200");
  store.put(item("A", "9", 3, { trades: 2, volume: "5", value: "40", high: "4", low: "2" }), 6_000);
  assert.deepEqual([row.trace.low, row.trace.high, placeIn(row.trace, 9)], [2, 4, 1]);
});

test("range, turnover and volume are those of the day so far where it is known", () => {
  const store = new Store();
  const said = { cum_volume: 7, cum_value: "12.50" };
  store.put(item("A", "5", 1, { trades: 0, ...said }), null);
  const [row] = store.all;
  const shown = () => [rangeOf(row), row.turnover, row.turnoverText, row.volume, row.volumeText];
  assert.deepEqual([store.hasDays, store.hasSums, row.day], [false, true, undefined]);
  assert.deepEqual(shown(), [row.trace, 12.5, "12.50", 7, 7]);
  const day = { start: 0, trades: 9, volume: "90071992547409931", value: "1.5", high: "6", low: "3.5", open: "4" };
  store.put(item("A", "5", 2, { day, ...said }), 2_000);
  assert.deepEqual(shown(), [{ low: 3.5, high: 6 }, 1.5, "1.5", Number(day.volume), day.volume]);
  assert.equal(store.hasDays, true);
  // A day without a trade that counts for the range has none, whatever the page has seen.
  store.put(item("A", "5", 3, { day: { start: 0, trades: 1, volume: "1", value: "5" } }), 4_000);
  assert.deepEqual([placeIn(rangeOf(row), 5), row.turnover], [null, 5]);
  // Nobody knows it any more.
  store.put(item("A", "6", 4, { trades: 0 }), 6_000);
  assert.deepEqual(shown(), [row.trace, null, undefined, null, undefined]);
  assert.equal(store.newestMs, 4_000);
  store.clear();
  assert.deepEqual([store.hasDays, store.newestMs], [false, 0]);
});

test("the day so far is told as the bar of a day, its mean price beside it", () => {
  const day = { start: 1_000, trades: 3, volume: "3", value: "2.00", high: "1.10", low: "0.5", open: "0.50" };
  const bar = barOfDay({ price: "0.30", day });
  assert.deepEqual(bar, { start: 1_000, end: 86_401_000, open: "0.50", high: "1.10", low: "0.5", close: "0.30", volume: "3", value: "2.00", vwap: "0.666667" });
  assert.equal(barOfDay({ price: "100", day: { ...day, volume: "2", value: "400" } }).vwap, "200");
  // No trade of it counts for the volume, the range or the last price.
  const none = barOfDay({ price: "100", day: { start: 0, trades: 1, volume: "0", value: "0" } });
  assert.deepEqual([none.open, none.high, none.low, none.vwap], [null, null, null, null]);
});

test("a bar whose trades set no price is no candle, and has its volume", () => {
  const bar = { start: 60_000, end: 120_000, open: null, high: null, low: null, close: null, volume: "40", closed: true };
  assert.deepEqual(candleOf(bar), { time: 60 });
  assert.deepEqual([kindOf(bar), digitsOf([bar]), amountText(bar.open), amountText(bar.volume)], ["soft", 0, "–", "40"]);
  assert.match(barText(bar, "1m"), /open –, high –, low –, close –, volume 40$/);
  const priced = candleOf({ ...bar, open: "10", close: "9.5" });
  assert.deepEqual(priced, { time: 60, open: 10, high: 10, low: 9.5, close: 9.5 });
  assert.deepEqual(candleOf({ ...bar, high: "12", low: "9" }), { time: 60 });
});

test("events are recent by the exchange's clock, and absent where nobody makes them", () => {
  const burst = '{"isin":"A","start":1000,"end":2000,"open":1.50,"close":1,"percent":-33.3}';
  const [one] = readBursts(`{"count":1,"data":[${burst}]}`);
  assert.deepEqual([one.startMs, one.endMs, one.end, one.open], [1_000, 2_000, 2_000, "1.50"]);
  const [move] = readMoves('{"count":1,"data":[{"isin":"A","start":1000000,"end":2500000,"from":1.10,"to":2,"percent":81.8}]}');
  assert.deepEqual([move.startMs, move.endMs, move.from, move.to], [1_000, 2_500, "1.10", "2"]);
  assert.equal(recent([], 0), null);
  assert.deepEqual(recent([one], 2_000 + 600_000), []);
  const many = [5, 4, 3, 2].map((endMs) => ({ endMs }));
  assert.deepEqual(recent(many, 10), many.slice(0, 3));
});

test("traces that begin at once are not shortened in the same window", () => {
  const [one, other] = [0, 7].map((number) => new Trace(number));
  for (let window = 1; window <= 54; window += 1) for (const trace of [one, other]) trace.add(window * 2_000, window);
  assert.deepEqual([one.times.length, other.times.length], [54, 45]);
  assert.deepEqual([one.times.at(-1), other.times.at(-1), other.prices.at(-1)], [108_000, 108_000, 54]);
});

test("movers of the day are the few with the greatest change, each way, and turnover", () => {
  const row = (isin, ratio, turnover) => ({ isin, change: { ratio }, turnover });
  const rows = [row("A", 0.5, 1), row("B", -0.25, null), row("C", 1.5, 7), row("D", null, 3), row("E", 0.75, null), row("F", 0, 9)];
  const { gainers, losers, value } = dayMovers(rows);
  assert.deepEqual(gainers, [{ isin: "C", percent: 150, value: 7 }, { isin: "E", percent: 75, value: null }]);
  assert.deepEqual(losers, [{ isin: "B", percent: -25, value: null }]);
  assert.deepEqual(value.map(({ isin }) => isin), ["F", "C"]);
});

test("figures of a row are written once for each version of it", () => {
  const store = new Store();
  store.put(item("A", "9000", 1), null);
  store.put(item("A", "10000.50", 2), 2_000);
  const [row] = store.all;
  const { figures } = row;
  assert.deepEqual([figures.price, figures.priceTitle, figures.difference, figures.ratio], ["10,000.50", undefined, "▲ 1,000.50", "+11.12%"]);
  assert.deepEqual(figures.range, { place: 1, ends: ["9,000.00", "10,000.50"], full: ["9,000.00", "10,000.50"] });
  assert.equal(figures.widths.ends, widthOf("9,000.00") + widthOf("10,000.50"));
  assert.equal(row.figures, figures);
  store.put(item("A", "10000.50", 3), 4_000);
  assert.notEqual(row.figures, figures);
});

test("the market at a glance adds up by market", () => {
  const row = (market, kind, turnover, gained = 0) => ({ instrument: market && { market }, change: { kind }, turnover, gained });
  const sums = glance([row("A", "up", 5), row("B", "down", 9), row("B", "", null), row(null, "up", null)]);
  assert.deepEqual(sums, [
    { market: null, instruments: 4, up: 2, down: 1, same: 1, turnover: 14, level: null },
    { market: "B", instruments: 2, up: 0, down: 1, same: 1, turnover: 9, level: null },
    { market: "A", instruments: 1, up: 1, down: 0, same: 0, turnover: 5, level: null },
  ]);
  const levels = glance([row("A", "up", 5, 30), row("A", "down", 1, -20), row("B", "", 1)], new Map([["A", 1_000]]));
  assert.deepEqual(levels.map(({ level }) => level), [null, 1_010, null]);
  const texts = [0, 999, 999.6, 2_918_264_100, 45_600, 999_999, 123_400_000, 7.2e12, null].map(shortText);
  assert.deepEqual(texts, ["0", "999", "1.00K", "2.92B", "45.6K", "1.00M", "123M", "7.20T", "–"]);
});

test("the board index is what listed shares are worth beside the previous close", () => {
  const listed = (isin, market, prev_close, listed_shares, currency = "KRW") => ({ isin, market, prev_close, listed_shares, currency });
  const instruments = [
    listed("A", "X", "100", 1_000),
    listed("B", "X", "50.5", 2_000),
    listed("C", "X", null, 9_999),
    listed("D", "X", "7", null),
    listed("E", "Y", "1", 10),
    listed("F", "Y", "1", 10, "USD"),
  ];
  assert.deepEqual(instruments.map(weightOf), [1_000, 2_000, 0, 0, 10, 10]);
  assert.equal(weightOf(null), 0);
  assert.deepEqual([...basesOf(instruments)], [["X", 201_000], ["Y", NaN]]);
  assert.deepEqual([levelOf(201_000, 2_010), levelOf(undefined, 0), levelOf(NaN, 0)], [1_010, null, null]);
  const store = new Store();
  store.setInstruments(instruments);
  // B has not traded: it counts at its previous close.
  store.put(item("A", "110"), null);
  store.put(item("C", "1"), null);
  assert.deepEqual(store.all.map(({ gained }) => gained), [10_000, 0]);
  const [, { level }] = glance(store.all, store.indexBases);
  assert.deepEqual([levelText(level), ratioText(levelChange(level))], ["1,049.75", "+4.98%"]);
  assert.deepEqual([levelText(1_234.5), ratioText(levelChange(1_000.004)), ratioText(levelChange(990))], ["1,234.50", "0.00%", "−1.00%"]);
});

test("a filter wants the chosen markets and sectors, or all", () => {
  const wants = (markets, sectors, instrument) => isWanted({ markets: new Set(markets), sectors: new Set(sectors) }, instrument);
  const instrument = { market: "A", sector: "x" };
  assert.ok(wants([], [], null));
  assert.ok(wants(["A", "B"], ["x"], instrument));
  assert.ok(!wants(["B"], [], instrument));
  assert.ok(!wants(["A"], ["y"], instrument));
  assert.ok(!wants(["A"], [], null));
  assert.deepEqual(sectorsOf([instrument, { sector: "b" }, instrument, { sector: null }]), [["b", 1], ["x", 2]]);
});

test("watch-lists have names, are kept, and the list of former days is the first one", () => {
  const first = parseLists(null, `["${SAMSUNG}"]`);
  assert.deepEqual([...activeList(first)], [SAMSUNG]);
  const two = withList(first, "Chips", new Set([HYNIX]));
  assert.deepEqual(parseLists(listsText(two)), two);
  assert.match(nameProblem(two, "Chips"), /There is a list/);
  assert.match(nameProblem(two, " "), /needs a name/);
  assert.match(nameProblem(two, "x".repeat(41)), /40/);
  let many = two;
  while (many.lists.size < 20) many = withList(many, `list ${many.lists.size}`, new Set());
  assert.match(nameProblem(many, "one more"), /20 lists/);
  const one = withoutActive(two);
  assert.deepEqual(one, first);
  assert.equal(activeList(withoutActive(one)).size, 0);
  for (const odd of ["7", "{", '{"lists":[[1,2],["a",["x"]],["a",[]]],"active":"z"}']) {
    assert.equal(activeList(parseLists(odd)).size, 0);
  }
});

test("a watch-list goes out as text and comes back, by ISIN or code", () => {
  const instruments = new Map([[SAMSUNG, { name: "Samsung # 1" }]]);
  const text = exportText(new Set([SAMSUNG, HYNIX]), instruments);
  assert.equal(text, `${HYNIX}\n${SAMSUNG}  # Samsung # 1`);
  const isinOf = (word) => ({ "000660": HYNIX })[word] ?? (word.startsWith("KR7") ? word : null);
  assert.deepEqual([...importText(text, isinOf).isins], [HYNIX, SAMSUNG]);
  const { isins, unknown } = importText(`000660, ${SAMSUNG};what`, isinOf);
  assert.deepEqual([[...isins], unknown], [[HYNIX, SAMSUNG], ["what"]]);
  const many = Array.from({ length: 1_002 }, (_, n) => `KR7${String(n).padStart(9, "0")}`).join(" ");
  assert.equal(importText(many, isinOf).left, 2);
});

test("rows are ordered both ways, those without a value last", () => {
  const rows = [
    { isin: "B", price: 2, change: { ratio: null } },
    { isin: "A", price: 2, change: { ratio: 0.1 } },
    { isin: "C", price: 1, change: { ratio: -0.2 } },
  ];
  const isins = (order) => rows.toSorted(comparator(order)).map(({ isin }) => isin).join("");
  assert.equal(isins({ column: "price", direction: "descending" }), "ABC");
  assert.equal(isins({ column: "price", direction: "ascending" }), "CAB");
  assert.equal(isins({ column: "change", direction: "ascending" }), "CAB");
  assert.equal(isins({ column: "change", direction: "descending" }), "ACB");
  const first = nextOrder({ column: "price", direction: "ascending" }, "isin");
  assert.deepEqual(first, { column: "isin", direction: "ascending" });
  assert.equal(nextOrder(first, "isin").direction, "descending");
});

test("a watch-list outlives the page, and whatever else is kept in its place", () => {
  const watched = toggled(toggled(new Set(), SAMSUNG), HYNIX);
  assert.deepEqual(parseWatchList(JSON.stringify([...watched])), watched);
  assert.deepEqual(toggled(watched, HYNIX), new Set([SAMSUNG]));
  for (const kept of [null, "", "{", "7", '{"a":1}', '["<b>",7,null]']) {
    assert.equal(parseWatchList(kept).size, 0);
  }
});

test("only rows in view, and a few around them, are drawn", () => {
  const place = { count: 2_879, rowHeight: 36, viewHeight: 720 };
  assert.deepEqual(visibleRange({ ...place, scrollTop: 0 }), { first: 0, end: 24 });
  const middle = visibleRange({ ...place, scrollTop: 36_000 });
  assert.ok(middle.first <= 1_000 && middle.end >= 1_020 && middle.end - middle.first < 40);
  // The same rows for some way, with one beyond those in view at least.
  const ranges = new Set();
  for (let scrollTop = 36_000; scrollTop < 36_360; scrollTop += 1) {
    const { first, end } = visibleRange({ ...place, scrollTop });
    assert.ok(first * 36 < scrollTop && end * 36 > scrollTop + 720);
    ranges.add(`${first} ${end}`);
  }
  assert.ok(ranges.size <= 6, [...ranges].join());
  assert.equal(visibleRange({ ...place, scrollTop: 2_859 * 36 }).end, 2_879);
  assert.deepEqual(visibleRange({ ...place, count: 0, scrollTop: 0 }), { first: 0, end: 0 });
});

test("keys move by a row, a page, to either end, and never beyond", () => {
  const place = { count: 100, rowHeight: 36, viewHeight: 360 };
  assert.equal(rowAfter("ArrowDown", -1, place), 0);
  assert.equal(rowAfter("ArrowDown", 99, place), 99);
  assert.equal(rowAfter("ArrowUp", 0, place), 0);
  assert.equal(rowAfter("PageDown", 0, place), 9);
  assert.equal(rowAfter("PageUp", 5, place), 0);
  assert.equal(rowAfter("Home", 50, place), 0);
  assert.equal(rowAfter("End", 50, place), 99);
  assert.equal(rowAfter("x", 50, place), null);
  assert.equal(rowAfter("End", -1, { ...place, count: 0 }), null);
  assert.equal(scrollTopFor(50, { ...place, scrollTop: 0 }), 51 * 36 - 360);
  assert.equal(scrollTopFor(5, { ...place, scrollTop: 0 }), 0);
  assert.equal(scrollTopFor(2, { ...place, scrollTop: 360 }), 72);
});

test("the store measures against the close, else against the first price", () => {
  const store = new Store();
  store.put(item(SAMSUNG, "1000"), null);
  store.put(item(SAMSUNG, "1100", 2, { trades: 37 }), 2_000);
  assert.equal(store.reference, "first");
  assert.equal(store.rows.get(SAMSUNG).change.difference, 100);
  assert.equal(store.rows.get(SAMSUNG).trades, 38);
  store.put(item(HYNIX, "5.50"), null);
  store.setInstruments([{ isin: SAMSUNG, name: "삼성전자", code: "005930", prev_close: 2_200 }]);
  assert.equal(store.reference, "mixed");
  assert.equal(store.rows.get(SAMSUNG).change.ratio, -0.5);
  assert.equal(store.rows.get(SAMSUNG).trades, 38);
  const order = { column: "name", direction: "ascending" };
  const isins = (question) => store.select({ order, ...question }).map(({ isin }) => isin);
  assert.deepEqual(isins({ search: "삼성" }), [SAMSUNG]);
  assert.deepEqual(isins({ watched: new Set([HYNIX]) }), [HYNIX]);
  assert.deepEqual(isins({}), [HYNIX, SAMSUNG]);
  store.clear();
  assert.deepEqual(isins({}), []);
});

test("what an exchange says of trading is the row's, and goes before the table", () => {
  const store = new Store();
  const halt = { isin: SAMSUNG, status: "halted", time: 1, number: 1 };
  store.setInstruments([{ isin: SAMSUNG, status: "halted" }]);
  store.setStatuses(new Map([[SAMSUNG, [halt]]]));
  store.put(item(SAMSUNG, "1000"), null);
  const row = store.rows.get(SAMSUNG);
  assert.deepEqual(row.statuses, [halt]);
  assert.equal(row.isHalted, false);
  const { version } = row;
  store.setStatuses(new Map());
  assert.ok(row.version > version);
  assert.deepEqual([row.statuses.length, row.isHalted], [0, true]);
  store.setStatuses(new Map([[SAMSUNG, [{ ...halt, status: "price_bands" }]]]));
  assert.equal(row.isHalted, true);
});

test("a row is one object, and another version for another look", () => {
  const store = new Store();
  store.put(item(SAMSUNG, "1000"), null);
  const row = store.rows.get(SAMSUNG);
  const versions = [row.version];
  const changes = [
    () => store.put(item(SAMSUNG, "1000", 2), 2_000),
    () => store.put(item(SAMSUNG, "1100", 3), 4_000),
    () => store.setInstruments([{ isin: SAMSUNG, name: "삼성전자", prev_close: "1000.5" }]),
  ];
  for (const change of changes) {
    change();
    assert.equal(store.rows.get(SAMSUNG), row);
    assert.ok(row.version > versions.at(-1));
    versions.push(row.version);
  }
  assert.deepEqual([row.price, row.change.kind, row.digits, row.text.includes("삼성전자")], [1_100, "up", 1, true]);
  store.clear();
  store.put(item(SAMSUNG, "7", 9), null);
  assert.notEqual(store.rows.get(SAMSUNG), row);
  assert.equal(store.rows.get(SAMSUNG).trades, 1);
});

test("a window in parts is counted as one", () => {
  const store = new Store();
  store.count({ window: 2_000, data: [item(SAMSUNG, "1", 1, { trades: 3 })] });
  store.count({ window: 2_000, data: [item(HYNIX, "1", 1, { trades: 4 })] });
  assert.deepEqual([store.changed, store.tradesInWindow], [2, 7]);
  assert.deepEqual(store.quiet(), { quietMs: 0, sinceMs: 2_000 });
  store.count({ window: 4_000, data: [item(NAVER, "1")] });
  assert.deepEqual([store.changed, store.tradesInWindow, store.totalTrades], [1, 1, 8]);
});

test("windows without a trade are told from windows that have some", () => {
  const store = new Store();
  assert.equal(store.quiet().quietMs, 0);
  store.hear(2_000);
  store.hear(8_000);
  assert.deepEqual(store.quiet(), { quietMs: 6_000, sinceMs: null });
  store.count({ window: 10_000, data: [item(SAMSUNG, "1", 1, { trades: 3 })] });
  store.hear(10_000);
  assert.deepEqual([store.changed, store.tradesInWindow], [1, 3]);
  store.hear(14_000);
  assert.deepEqual(store.quiet(), { quietMs: 4_000, sinceMs: 10_000 });
  assert.deepEqual([store.changed, store.tradesInWindow], [0, 0]);
});

test("what is shown is called stale as soon as it may be", () => {
  const line = {
    link: { kind: "live", text: "live" },
    wasLive: true,
    heardMs: 10_000,
    staleSinceMs: null,
    windowMs: 2_000,
    heartbeatMs: 5_000,
    nowMs: 12_000,
  };
  const limitMs = silenceMs(line);
  assert.equal(limitMs, 7_500);
  assert.equal(judge(line).kind, "live");
  assert.equal(judge({ ...line, nowMs: 10_000 + limitMs }).kind, "live");
  const silent = judge({ ...line, nowMs: 10_001 + limitMs });
  assert.deepEqual([silent.kind, silent.sinceMs], ["stale", 10_000]);
  const told = { ...line, link: { kind: "stale", text: "no window for 6 s" } };
  const starting = { ...told, link: { kind: "starting", text: "the throttle job is starting" } };
  assert.equal(judge(starting).kind, "starting");
  assert.deepEqual(judge({ ...told, staleSinceMs: 4_000 }), {
    kind: "stale",
    sinceMs: 4_000,
    reason: "No window for 6 s.",
  });
  assert.equal(judge(told).sinceMs, 10_000);
  const lost = { ...line, link: { kind: "offline", text: "reconnecting in 14.8 s" } };
  const reason = (leftMs) => judge({ ...lost, retryAtMs: line.nowMs + leftMs }).reason;
  assert.equal(reason(14_800), "Connection lost, next try in 15 s.");
  assert.equal(reason(2_000), "Connection lost, next try in 2 s.");
  assert.equal(reason(-10), "Connection lost, reconnecting.");
  assert.deepEqual([judge(lost).kind, judge(lost).sinceMs], ["offline", 10_000]);
  const again = { ...line, link: { kind: "connecting", text: "connecting" } };
  assert.equal(judge(again).kind, "offline");
  assert.equal(judge({ ...again, wasLive: false, heardMs: null }).kind, "connecting");
  const closed = judge({ ...line, link: { kind: "closed", text: "closed (4501)" } });
  assert.match(closed.reason, /token/);
});

test("a price is stale from the making of a newer one until that is shown", () => {
  const staleness = new Staleness(["polled", "pushed"]);
  const [one, two, three] = [1, 2, 3].map((seq) => item(SAMSUNG, String(seq), seq));
  staleness.show("polled", one, 0, 0);
  staleness.show("pushed", one, 0, 0);
  assert.equal(staleness.at("polled", 1_000), 0);
  assert.equal(staleness.at("polled", -1), null);
  staleness.show("pushed", two, 2_000, 1_500);
  staleness.show("pushed", three, 4_000, 3_800);
  assert.equal(staleness.at("pushed", 4_000), 0);
  assert.equal(staleness.at("polled", 5_000), 3_500);
  // The past is known better afterwards: pushing was behind as well.
  assert.equal(staleness.at("pushed", 1_900), 400);
  staleness.show("polled", three, 10_000, 9_000);
  assert.equal(staleness.at("polled", 10_000), 0);
  assert.equal(staleness.at("polled", 9_999), 8_499);
  const series = staleness.series("polled", 0, 10_000, 1_000);
  assert.equal(series.length, 11);
  assert.deepEqual(summary(series).most, 7_500);
  assert.equal(summary([]), null);
});

test("a poll may be ahead of the stream", () => {
  const staleness = new Staleness(["polled", "pushed"]);
  staleness.show("pushed", item(SAMSUNG, "1", 1), 0, 0);
  staleness.show("polled", item(SAMSUNG, "2", 2), 3_000, 2_500);
  assert.equal(staleness.at("pushed", 4_000), 1_500);
  staleness.show("polled", item(SAMSUNG, "1", 1), 4_000, 0);
  assert.equal(staleness.at("polled", 4_000), 0);
});

test("a trade of a tape was made when its window says", () => {
  assert.equal(madeMs({ time: 3_500_000 }, 2_000, 4_000), 3_500);
  assert.equal(madeMs({ time: 500_000 }, 2_000, 4_000), 4_000);
  assert.equal(madeMs({ time: 500_000 }, 2_000, null), 500);
});

test("what is kept of staleness is bounded", () => {
  const staleness = new Staleness(["polled", "pushed"]);
  staleness.show("polled", item(SAMSUNG, "1", 1), 0, 0);
  for (let seq = 1; seq < 1_000; seq += 1) {
    staleness.show("pushed", item(SAMSUNG, "1", seq), seq * 2_000, seq * 2_000);
    if (seq % 5 === 0) staleness.show("polled", item(SAMSUNG, "1", seq), seq * 2_000, seq * 2_000);
  }
  assert.ok(staleness._trades.length < 200);
  assert.equal(staleness.at("polled", 1_998_500), 6_500);
});

test("windows of the log and of the stream become one history", () => {
  const point = (window, price) => ({ window, price, trades: 1 });
  const log = [point(2_000, "1"), point(4_000, "2")];
  const windows = merged(log, [point(4_000, "3"), point(6_000, "4")]);
  assert.deepEqual(windows.map(({ price }) => price), ["1", "3", "4"]);
  assert.deepEqual(chartPoints([point(4_000, "3"), point(4_500, "5")]), [
    { time: 4, value: 5, trades: 2 },
  ]);
});

test("a trade that a late update has brought is in its own window", () => {
  const point = (window, time, price) => ({ window, time, price, size: "1", trades: 1 });
  const log = [point(2_000, 1n, "1"), point(4_000, 3n, "2")];
  const windows = withLog(log, [point(8_000, 3n, "2"), point(10_000, 9n, "2")]);
  assert.deepEqual(windows.map(({ window }) => window), [2_000, 4_000, 10_000]);
  assert.deepEqual(withLog([], log), log);
  assert.deepEqual(withLog(log, log), log);
});

test("a chart is told of its newest point alone, where it has all others", () => {
  const point = (window) => ({ window, price: String(window), trades: 1 });
  const before = [2_000, 4_000].map(point);
  const after = merged(before, [point(6_000)]);
  assert.deepEqual(newPoint(before, after), { time: 6, value: 6_000, trades: 1 });
  assert.deepEqual(newPoint(after, merged(after, [point(6_500)])), { time: 6, value: 6_500, trades: 2 });
  assert.equal(newPoint([], before), null);
  assert.equal(newPoint(before, merged(before, [point(4_000)])), null);
  assert.equal(newPoint(before, merged(before, [point(3_000)])), null);
  assert.equal(newPoint(before, merged([point(1_000)], after)), null);
});

test("a history is bounded, and seldom cut", () => {
  let windows = [];
  let cuts = 0;
  for (let window = 1; window <= 10_000; window += 1) {
    const before = windows;
    windows = merged(windows, [{ window, price: "1", trades: 1 }]);
    cuts += before.length > windows.length;
    assert.ok(windows.length <= 2_000);
  }
  assert.equal(windows.at(-1).window, 10_000);
  assert.ok(windows.length >= 1_800 && cuts < 50, String(cuts));
});

test("a line knows what it heard, and since when nothing came", () => {
  const line = new Line();
  assert.equal(line.judge(null).kind, "connecting");
  assert.equal(line.hear({ type: "welcome", window_ms: 500, heartbeat_ms: 700 }, 0), false);
  assert.deepEqual([line.windowMs, line.heartbeatMs], [500, 700]);
  assert.equal(line.hear({ type: "snapshot", epoch: null }, 0), true);
  assert.equal(line.wasLive, false);
  assert.equal(line.hear({ type: "update", epoch: "k3x9" }, 0), true);
  assert.equal(line.wasLive, true);
  line.link = { kind: "live", text: "" };
  assert.equal(line.judge(null).kind, "live");
  line.heardMs -= 60_000;
  assert.equal(line.judge(null).kind, "stale");
  line.hear({ type: "status", feed: "stale", since_window: 1_000 }, 400);
  assert.equal(line.staleSinceMs, 600);
  line.hear({ type: "status", feed: "live", since_window: 1_000 }, 400);
  assert.equal(line.staleSinceMs, null);
});

test("of two items the one of the greater revision is newer", () => {
  const gone = item("A", "99", 2);
  const stands = item("A", "70", 1, { revision: 1 });
  assert.ok(isOlder(gone, stands));
  assert.ok(!isOlder(stands, gone));
  assert.ok(isOlder(stands, item("A", "71", 3, { revision: 1 })));
  assert.ok(!isOlder(stands, stands));
});

test("a bar that lost a trade is newer", () => {
  const states = [
    { revision: 0, trades: 2, closed: false },
    { revision: 0, trades: 3, closed: false },
    { revision: 1, trades: 2, closed: false },
    { revision: 1, trades: 2, closed: true },
    { revision: 2, trades: 0, closed: true },
  ];
  states.forEach((known, place) => {
    assert.deepEqual(
      states.map((state) => isOlderBar(state, known)),
      states.map((_, other) => other < place),
    );
  });
});

test("a row whose trade was taken back says so until its next trade", () => {
  const store = new Store();
  store.put(item("A", "99", 2), 2_000);
  assert.equal(store.rows.get("A").isCorrected, false);
  store.put(item("A", "70", 1, { revision: 1 }), 4_000);
  assert.equal(store.rows.get("A").isCorrected, true);
  store.put(item("A", "71", 3, { revision: 1 }), 6_000);
  assert.equal(store.rows.get("A").isCorrected, false);
  // What was so when the page asked is no news of this page's, but for a correction itself.
  store.put(item("B", "5", 1, { revision: 3 }), null);
  store.put(item("C", "5", 1, { revision: 3, corrects: 7 }), null);
  assert.deepEqual(["B", "C"].map((isin) => store.rows.get(isin).isCorrected), [false, true]);
});
