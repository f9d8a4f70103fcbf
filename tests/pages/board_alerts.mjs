// The rules of alerts, in Node, beside a copy of pages.

import assert from "node:assert/strict";
import { test } from "node:test";

import { compareDecimals, isDecimal, sideOfChange } from "./static/board/alerts/decimal.js";
import { alertsText, MOST_ALERTS, numberProblem, parseAlerts, typedValue, valueProblem } from "./static/board/alerts/kept.js";
import { armed, decisivePrice, isCrossed, judged, judgedByBursts, NEW, sideOf } from "./static/board/alerts/rules.js";
import { Alerts } from "./static/board/alerts/watcher.js";
import { stateText, toldText, waitsText } from "./static/board/alerts/words.js";
import { readInstruments } from "./static/board/store.js";

const SAMSUNG = "KR7005930003";
const HYNIX = "KR7000660001";

const alert = (more) => ({ id: "a-1", isin: SAMSUNG, kind: "price", way: "up", value: "200000", isOnce: false, ...NEW, ...more });

// The places, in a series of prices, at which an alert is due.
function dueAt(start, prices, close = null) {
  const due = [];
  let now = armed(start, prices[0], close);
  prices.slice(1).forEach((price, place) => {
    const outcome = judged(now, price, close, 1_000 + place);
    if (outcome.isDue) due.push(place + 1);
    now = outcome.alert;
  });
  return due;
}

test("decimals are compared digit by digit", () => {
  assert.equal(compareDecimals("0.1", "0.10"), 0);
  assert.equal(compareDecimals("9007199254740993", "9007199254740992"), 1);
  assert.equal(compareDecimals("0.000000000000000001", "0.000000000000000002"), -1);
  assert.equal(compareDecimals("999999999999999999.999999999999999999", "999999999999999999.999999999999999998"), 1);
  assert.deepEqual(["1", "0.30", "1.", "-1", "1e3", "", " 1", "1234567890123456789", null, 7].map(isDecimal), [
    true, true, false, false, false, false, false, false, false, false,
  ]);
  // In binary, 0.1 + 0.2 is above 0.3, and 100.3 is not 0.3 % above 100.
  assert.equal(sideOfChange("100.3", "100", "0.3"), 1);
  assert.equal(sideOfChange("100.299999999999999999", "100", "0.3"), 0);
  assert.equal(sideOfChange("99.7", "100", "0.3"), -1);
});

test("a price is crossed when it is reached from the other side", () => {
  const prices = ["199900", "200000", "200100", "200000", "199900", "199800", "200500"];
  assert.deepEqual(dueAt(alert({ way: "up" }), prices), [1, 6]);
  assert.deepEqual(dueAt(alert({ way: "down" }), prices), [3]);
  assert.deepEqual(dueAt(alert({ way: "either" }), prices), [1, 3, 6]);
  // By a leap as well, and not by standing there from the beginning.
  assert.deepEqual(dueAt(alert({ way: "either" }), ["1", "900000", "1"]), [1, 2]);
  assert.deepEqual(dueAt(alert({ way: "either" }), ["200000", "200100", "200200"]), []);
  assert.deepEqual(dueAt(alert({ way: "either" }), ["200000", "200100", "200000"]), [2]);
  assert.equal(isCrossed(alert(), null, 1), false);
});

test("an alert that is told once is told once; each time, after it has gone back", () => {
  const prices = ["199900", "200000", "199900", "200000"];
  assert.deepEqual(dueAt(alert({ isOnce: true }), prices), [1]);
  assert.deepEqual(dueAt(alert({ isOnce: false }), prices), [1, 3]);
  const { alert: done } = judged(armed(alert({ isOnce: true }), "1", null), "200000", null, 5);
  assert.deepEqual([done.isDone, done.toldMs, done.toldPrice], [true, 5, "200000"]);
  assert.equal(judged(done, "1", null, 6).alert, done);
  assert.deepEqual(armed(done, "1", null), alert({ isOnce: true, side: -1 }));
});

test("a price that was only touched within a window is told, in each window once", () => {
  const waiting = (more) => armed(alert(more), "199000", null);
  const window = (end, high, low = "198000") => ({ window: end, high, low });
  const first = judged(waiting(), "199000", null, 5, window(2_000, "200100"));
  assert.deepEqual(first, {
    alert: { ...waiting(), toldMs: 5, toldPrice: "200100", toldWindow: 2_000 },
    isDue: true,
  });
  // Another tab hears of the same window, and then both of the next.
  assert.equal(judged(first.alert, "199000", null, 6, window(2_000, "200100")).alert, first.alert);
  assert.equal(judged(first.alert, "199000", null, 7, window(4_000, "200000")).isDue, true);
  assert.equal(judged(first.alert, "199000", null, 7, window(4_000, "199999")).alert, first.alert);
  // Downwards by the lowest price; where the price is beyond itself, it is told.
  const down = judged(waiting({ way: "down", value: "198000" }), "199000", null, 5, window(2_000, "200100"));
  assert.deepEqual([down.isDue, down.alert.toldPrice, down.alert.side], [true, "198000", 1]);
  const beyond = judged(waiting(), "200050", null, 5, window(2_000, "200100"));
  assert.deepEqual([beyond.alert.toldPrice, beyond.alert.side], ["200050", 1]);
  const change = waiting({ kind: "change", value: "5" });
  assert.equal(judged(armed(change, "100", "100"), "101", "100", 5, window(2_000, "105", "99")).isDue, true);
  // An alert at its value is told the next time the price gets there, not for standing there.
  assert.equal(judged(armed(alert(), "200000", null), "199000", null, 5, window(2_000, "200100")).isDue, false);
});

test("a change is beyond so many per cent, exactly, and again after it was within", () => {
  const change = (way) => alert({ kind: "change", way, value: "5" });
  const prices = ["100", "104.9999", "105", "106", "104", "105", "95", "94", "105"];
  assert.deepEqual(dueAt(change("up"), prices, "100"), [2, 5, 8]);
  assert.deepEqual(dueAt(change("down"), prices, "100"), [6]);
  assert.deepEqual(dueAt(change("either"), prices, "100"), [2, 5, 6, 8]);
  for (const close of [null, undefined, "0", "0.0", "-5"]) assert.equal(sideOf(change("up"), "5", close), null);
  const text = readInstruments(`{"data":[{"name":"\\"prev_close\\": 1","prev_close":100.10},{"prev_close": null}]}`);
  assert.deepEqual(text.data, [{ name: '"prev_close": 1', prev_close: "100.10" }, { prev_close: null }]);
});

test("a burst is due that ended after those that were known", () => {
  const start = alert({ kind: "burst", value: null });
  const burst = (isin, end) => ({ isin, end });
  const first = judgedByBursts(start, [burst(HYNIX, 99), burst(SAMSUNG, 50)], 1);
  assert.deepEqual([first.isDue, first.alert.burstMs], [false, 50]);
  assert.equal(judgedByBursts(first.alert, [burst(HYNIX, 120), burst(SAMSUNG, 50)], 2).alert, first.alert);
  const next = judgedByBursts(first.alert, [burst(SAMSUNG, 80), burst(SAMSUNG, 70), burst(SAMSUNG, 50)], 3);
  assert.deepEqual([next.isDue, next.alert.burstMs, next.alert.toldMs], [true, 80, 3]);
  assert.equal(judgedByBursts(armed(start), [], 1).alert.burstMs, 0);
});

test("what the browser has kept is read, whatever it is", () => {
  const one = alert({ side: -1, toldMs: 7, toldPrice: "200000" });
  assert.deepEqual(parseAlerts(alertsText([one])), [one]);
  const burst = alert({ id: "b", kind: "burst", value: null });
  assert.deepEqual(parseAlerts(alertsText([burst, burst])), [burst]);
  for (const odd of [null, "", "{", "7", "null", '{"a":1}', "[null,7,[]]"]) assert.deepEqual(parseAlerts(odd), []);
  const wrong = [{ id: "<b>" }, { isin: "x" }, { kind: "x" }, { way: "__proto__" }, { value: "-1" }, { value: 5 }, { id: 7 }];
  assert.deepEqual(parseAlerts(alertsText(wrong.map((more) => alert(more)))), []);
  const mended = parseAlerts(alertsText([alert({ side: 9, toldMs: "x", toldPrice: "<b>", toldWindow: "x", isOnce: 1, isDone: "no", burstMs: {} })]));
  assert.deepEqual(mended, [alert({ isOnce: false })]);
  const many = Array.from({ length: 150 }, (_, n) => alert({ id: `n${n}` }));
  assert.equal(parseAlerts(alertsText(many)).length, MOST_ALERTS);
  assert.match(numberProblem(many), /100 alerts/);
});

test("a value is what was typed, if it is a number above zero", () => {
  assert.equal(typedValue(" 200,000 "), "200000");
  assert.equal(typedValue("007.50 %"), "7.50");
  assert.equal(valueProblem("price", "0.05"), null);
  for (const odd of ["", "0", "0.00", "-5", "1e5", "abc"]) assert.match(valueProblem("price", odd), /above zero/);
  assert.match(valueProblem("change", "1000.1"), /1,000/);
  assert.equal(valueProblem("burst", null), null);
});

// What two tabs of a browser share.
function makeStorage(text = null) {
  return { text, read: () => text, write: (_, next) => (text = next) };
}

function makeTab(storage, prices, nowMs = 1_000) {
  const tab = { told: [], changes: 0 };
  tab.alerts = new Alerts({
    storage,
    itemOf: (isin) => prices[isin] && { price: prices[isin], updates: prices.updates },
    closeOf: () => "190000",
    onTold: (alerts) => tab.told.push(...alerts.map(({ id }) => id)),
    onChange: () => (tab.changes += 1),
    nowMs: () => nowMs,
  });
  return tab;
}

const asked = { id: "a", isin: SAMSUNG, kind: "price", way: "up", value: "200000", isOnce: false };

test("of several tabs one tells, and each shows it", () => {
  const storage = makeStorage();
  const prices = { [SAMSUNG]: "199000" };
  const [one, other] = [makeTab(storage, prices), makeTab(storage, prices)];
  assert.equal(one.alerts.set(asked), null);
  assert.equal(one.alerts.set({ ...asked, id: "b", isin: HYNIX }), null);
  prices[SAMSUNG] = "200000";
  other.alerts.judge();
  one.alerts.judge();
  assert.deepEqual([one.told, other.told], [[], ["a"]]);
  assert.deepEqual([one, other].map(({ alerts }) => alerts.notices.length), [1, 1]);
  assert.deepEqual(one.alerts.list, other.alerts.list);
});

test("what a message says was touched counts for the price that is shown", () => {
  const storage = makeStorage();
  const prices = { [SAMSUNG]: "199000" };
  const [one, other] = [makeTab(storage, prices), makeTab(storage, prices)];
  one.alerts.set(asked);
  other.alerts.follow();
  const item = { isin: SAMSUNG, price: "199000", high: "200000", low: "199000" };
  const message = { window: 2_000, data: [{ isin: HYNIX, price: "1" }, item] };
  one.alerts.judge({ ...message, data: [{ ...item, price: "198000" }] }); // it was not taken in
  one.alerts.judge({ ...message, data: [{ isin: SAMSUNG, price: item.price, trades: 2, volume: "9", value: "9" }] });
  assert.deepEqual(one.told, []);
  one.alerts.judge(message);
  other.alerts.judge(message);
  assert.deepEqual([one.told, other.told], [["a"], []]);
  assert.deepEqual([one, other].map(({ alerts }) => alerts.notices.length), [1, 1]);
  one.alerts.judge();
  assert.deepEqual(one.told, ["a"]);
});

test("a price that does not count for the range reaches nothing", () => {
  const odd = { price: "250000", updates: "last,volume" };
  assert.deepEqual([decisivePrice(odd), decisivePrice({ price: "1", updates: "range" })], [null, "1"]);
  const ends = (high, low) => decisivePrice(odd, { high, low });
  assert.deepEqual([ends("199000", "198000"), ends("300000", "260000"), ends("300000", "1")], ["199000", "260000", "250000"]);
  const prices = { [SAMSUNG]: "199000" };
  const tab = makeTab(makeStorage(), prices);
  tab.alerts.set(asked);
  Object.assign(prices, { [SAMSUNG]: odd.price, updates: odd.updates });
  const item = { isin: SAMSUNG, ...odd, trades: 2, volume: "9", value: "9" };
  tab.alerts.judge({ window: 2_000, data: [item] }); // neither of the two counts
  tab.alerts.judge({ window: 4_000, data: [{ ...item, high: "199500", low: "199000" }] });
  tab.alerts.judge();
  assert.deepEqual([tab.told, tab.alerts.list[0].side], [[], -1]);
  tab.alerts.judge({ window: 6_000, data: [{ ...item, high: "200000", low: "199000" }] });
  assert.deepEqual([tab.told, tab.alerts.list[0].toldPrice], [["a"], "200000"]);
  // Who sets an alert meanwhile waits from the next price that counts.
  tab.alerts.set({ ...asked, value: "300000" });
  assert.equal(tab.alerts.list[0].side, null);
  Object.assign(prices, { [SAMSUNG]: "199000", updates: undefined });
  tab.alerts.judge();
  assert.equal(tab.alerts.list[0].side, -1);
});

test("two tabs that tell in the same instant show it once each", () => {
  const storage = makeStorage();
  const prices = { [SAMSUNG]: "199000" };
  const one = makeTab(storage, prices);
  one.alerts.set(asked);
  const kept = storage.read();
  const other = makeTab(storage, prices, 1_003);
  prices[SAMSUNG] = "200000";
  one.alerts.judge();
  storage.write("alerts", kept); // what `one` kept has not come to `other` yet
  other.alerts.judge();
  one.alerts.follow();
  assert.deepEqual([one.told, other.told], [["a"], ["a"]]);
  assert.deepEqual([one, other].map(({ alerts }) => alerts.notices.length), [1, 1]);
});

test("a crossing is told whatever lies between two messages: a sleep, a new page", () => {
  const storage = makeStorage();
  const prices = { [SAMSUNG]: "199000" };
  const before = makeTab(storage, prices);
  before.alerts.set(asked);
  prices[SAMSUNG] = "250000";
  const after = makeTab(storage, prices);
  after.alerts.judge();
  assert.deepEqual(after.told, ["a"]);
  assert.deepEqual(after.alerts.notices.map(({ alert: { toldPrice } }) => toldPrice), ["250000"]);
  before.alerts.follow();
  assert.deepEqual([before.told, before.alerts.notices.length], [[], 1]);
  before.alerts.judge();
  assert.deepEqual(before.told, []);
  after.alerts.dismiss(after.alerts.notices[0].id);
  assert.equal(after.alerts.notices.length, 0);
});

test("a browser that keeps nothing has alerts for as long as the page is open", () => {
  const prices = { [SAMSUNG]: "199000" };
  const tab = makeTab({ read: () => null, write: () => {} }, prices);
  tab.alerts.set(asked);
  tab.alerts.judge();
  prices[SAMSUNG] = "200000";
  tab.alerts.judge();
  assert.deepEqual(tab.told, ["a"]);
  tab.alerts.set({ ...asked, value: "300000" });
  assert.deepEqual(tab.alerts.of(SAMSUNG).map(({ value, side, toldMs }) => [value, side, toldMs]), [["300000", -1, null]]);
  tab.alerts.remove("a");
  assert.deepEqual(tab.alerts.list, []);
  for (let count = 0; count < MOST_ALERTS; count += 1) assert.equal(tab.alerts.set({ ...asked, id: `n${count}` }), null);
  assert.match(tab.alerts.set({ ...asked, id: "more" }), /100/);
  assert.equal(tab.alerts.set({ ...asked, id: "n7" }), null);
});

test("notices are bounded, the newest first", () => {
  const prices = { [SAMSUNG]: "1" };
  const tab = makeTab(makeStorage(), prices);
  for (let count = 0; count < 30; count += 1) tab.alerts.set({ ...asked, id: `n${count}` });
  prices[SAMSUNG] = "200000";
  tab.alerts.judge();
  assert.equal(tab.told.length, 30);
  assert.equal(tab.alerts.notices.length, 20);
  assert.equal(tab.alerts.notices[0].alert.id, "n29");
  tab.alerts.dismissAll();
  assert.equal(tab.alerts.notices.length, 0);
});

test("an alert says what it waits for and what has come", () => {
  assert.equal(waitsText(alert()), "rises to 200,000");
  assert.equal(waitsText(alert({ kind: "change", way: "either", value: "2.5" })), "moves 2.5 % or more");
  assert.equal(toldText(alert({ toldPrice: "200100" }), "X"), "X has risen to 200,000: 200,100");
  assert.equal(toldText(alert({ kind: "burst", value: null }), "X"), "X: a burst of trading");
  assert.equal(stateText(alert()), "each time");
  assert.match(stateText(alert({ isOnce: true, isDone: true, toldMs: 0 })), /^told at \d\d:\d\d:\d\d local$/);
});
