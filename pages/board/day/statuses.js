// What an exchange says of an instrument's trading: marks, and lines of the panel.

import { phrase, say } from "../../language.js";
import { clockText, priceText, zonedText } from "../format.js";
import { html } from "../html.js";

// `trading` and bands of prices stand in nobody's way: they have no mark.
const MARKS = {
  halted: { text: phrase("halted"), kind: "halted" },
  volatility_interruption: { text: phrase("VI"), kind: "halted" },
  auction: { text: phrase("auction"), kind: "halted" },
  limit_up: { text: phrase("limit ▲"), kind: "up" },
  limit_down: { text: phrase("limit ▼"), kind: "down" },
};
const LINES = {
  trading: phrase("Trading since {time}"),
  halted: phrase("Trading halted since {time}"),
  volatility_interruption: phrase("Volatility interruption since {time}"),
  auction: phrase("Auction since {time}"),
  limit_up: phrase("At the upper limit since {time}"),
  limit_down: phrase("At the lower limit since {time}"),
  price_bands: phrase("Price bands of {time}"),
};

// Returns [{text, kind: its class, title}] of a row.
export const statusMarks = (row) =>
  row.statuses
    .filter(({ status }) => status in MARKS)
    .map((entry) => {
      const { text, kind } = MARKS[entry.status];
      return { text: `${say(text)} ${clockText(entry.time / 1000)}`, kind, title: lineOf(entry) };
    });

// Properties: row, undefined if no trade has come.
export function StatusLines({ row }) {
  const lines = (row?.statuses ?? []).map(lineOf).filter(Boolean);
  return lines.map((line) => html`<p class="status-line soft" key=${line}>${line}</p>`);
}

function lineOf({ status, time, venue, until, reason, expected_price, expected_size, lower, upper }) {
  if (!(status in LINES)) return null;
  const parts = [say(LINES[status], { time: zonedText(time / 1000) }), venue, reason];
  if (until) parts.push(say("until {time}", { time: zonedText(until / 1000) }));
  if (expected_price) parts.push(say("expected price {price}", { price: priceText(expected_price) }));
  if (expected_size) parts.push(say("expected size {size}", { size: priceText(expected_size) }));
  if (lower) parts.push(say("lowest {price}", { price: priceText(lower) }));
  if (upper) parts.push(say("highest {price}", { price: priceText(upper) }));
  return parts.filter(Boolean).join(" · ");
}
