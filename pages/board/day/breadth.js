// The market at a glance: of each market and of all, how many instruments are above their
// reference and below it, and what was turned over. Pure.

import { language } from "../../language.js";
import { countText } from "../format.js";
import { levelOf } from "./board_index.js";

// Returns [{market, instruments, up, down, same, turnover, level}], the whole first (market null),
// then markets by turnover and size. Instruments without a market are in the whole only. Turnover
// is null if no row of them has one, the level of the board index if the market has no base.
export function glance(rows, bases = new Map()) {
  const whole = new Sum(null);
  const markets = new Map();
  for (const row of rows) {
    whole.add(row);
    const market = row.instrument?.market;
    if (!market) continue;
    if (!markets.has(market)) markets.set(market, new Sum(market));
    markets.get(market).add(row);
  }
  const size = ({ turnover, instruments }) => turnover + instruments / 1e6;
  const all = [whole, ...[...markets.values()].sort((a, b) => size(b) - size(a))];
  return all.map((sum) => sum.told(bases.get(sum.market)));
}

// Each row of a window is added: nothing is made for it.
class Sum {
  constructor(market) {
    this.market = market;
    this.instruments = this.up = this.down = this.turnover = this.turned = this.gained = 0;
  }

  add({ change: { kind }, turnover, gained }) {
    this.instruments += 1;
    this.gained += gained;
    if (kind === "up") this.up += 1;
    else if (kind === "down") this.down += 1;
    if (turnover === null) return;
    this.turned += 1;
    this.turnover += turnover;
  }

  told(base) {
    const { market, instruments, up, down, turned, turnover, gained } = this;
    const level = levelOf(base, gained);
    return { market, instruments, up, down, same: instruments - up - down, turnover: turned ? turnover : null, level };
  }
}

// Each language's units, the largest first; in Korean one goes up to 9,999.
const UNITS = {
  en: [
    [1e12, "T"],
    [1e9, "B"],
    [1e6, "M"],
    [1e3, "K"],
  ],
  ko: [
    [1e16, "경"],
    [1e12, "조"],
    [1e8, "억"],
    [1e4, "만"],
  ],
};
// What rounds up to the next unit is written in that.
const ROUNDS_UP_FROM = { en: 0.9995, ko: 0.99995 };

// 2918264100 -> "2.92B", or "29.2억" in Korean: three or four digits for the eye.
export function shortText(number) {
  if (number === null) return "–";
  for (const [unit, letter] of UNITS[language()]) {
    const count = number / unit;
    if (count < ROUNDS_UP_FROM[language()]) continue;
    return (count < 99.95 ? count.toPrecision(3).replace(/e.*/, "") : countText(Math.round(count))) + letter;
  }
  return countText(Math.round(number));
}
