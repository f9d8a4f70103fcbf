// The rules of the firehose page, run by Node; test_board_rules.py copies them here.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ActiveInstruments } from "./static/firehose/active_instruments.js";
import { bytesText, Meter, timesText } from "./static/firehose/figures.js";

test("a rate is the mean of the newest six seconds", () => {
  const meter = new Meter(1_000);
  meter.add(1_500, { trades: 100, bytes: 5_000 });
  assert.equal(meter.rate("trades", 1_900), 0);
  assert.equal(meter.rate("trades", 3_000), 50);
  meter.add(6_000, { trades: 200 });
  assert.equal(meter.rate("trades", 7_000), 50);
  // The first one is more than six seconds ago.
  assert.equal(meter.rate("trades", 8_000), 200 / 6);
  assert.equal(meter.rate("trades", 60_000), 0);
  assert.deepEqual(
    [meter.total("trades"), meter.total("bytes"), meter.total("rows")],
    [300, 5_000, 0],
  );
});

test("what is kept for rates is bounded by time", () => {
  const meter = new Meter(0);
  for (let ms = 0; ms < 100_000; ms += 100) meter.add(ms, { trades: 1 });
  assert.ok(meter._newest.length <= 60);
  assert.equal(meter.total("trades"), 1_000);
});

test("sides are compared once both have something", () => {
  assert.equal(timesText(100, 0), null);
  assert.equal(timesText(0, 100), null);
  assert.equal(timesText(350, 100), "3.5");
  assert.equal(timesText(123_456, 10), "12,346");
});

test("bytes are written short", () => {
  const texts = [0, 999, 1_000, 9_940, 9_960, 193_400, 999_499, 999_500, 2_400_000, 3e9];
  assert.deepEqual(texts.map(bytesText), [
    "0 B", "999 B", "1.0 kB", "9.9 kB", "10 kB", "193 kB", "999 kB", "1.0 MB", "2.4 MB", "3.0 GB",
  ]);
});

test("an instrument keeps its place until it is much quieter than others", () => {
  const active = new ActiveInstruments(2);
  active.add("A", 5);
  assert.deepEqual(active.choose(0), ["A"]);
  active.add("B", 4);
  active.add("C", 3);
  assert.deepEqual(active.choose(100), ["A", "B"]);
  // Busier, and yet among the first four.
  active.add("C", 50);
  active.add("D", 40);
  assert.deepEqual(active.choose(200), ["A", "B"]);
  active.add("E", 30);
  assert.deepEqual(active.choose(300), ["A", "C"]);
  // What is long ago counts little: A is still the most traded of all times.
  active.add("A", 1_000);
  assert.deepEqual(active.choose(400), ["A", "C"]);
  active.choose(200_000);
  for (const [isin, trades] of [["F", 6], ["C", 1], ["D", 1], ["E", 1]]) active.add(isin, trades);
  assert.deepEqual(active.choose(200_100), ["F", "C"]);
});

test("quiet instruments are forgotten", () => {
  const active = new ActiveInstruments(2);
  for (let number = 0; number < 5_000; number += 1) active.add(`I${number}`, number + 1);
  assert.deepEqual(active.choose(0), ["I4999", "I4998"]);
  assert.equal(active._counts.size, 1_000);
});
