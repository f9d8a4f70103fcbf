// The market at a glance: of each market and of all, how many issues are above their
// reference and below it, and what was turned over. Pure.

// Returns [{market, issues, up, down, same, turnover}], the whole first (market null), then
// markets by turnover and size. Issues without a market are in the whole only. Turnover is
// null if no row of them has one.
export function glance(rows) {
  const whole = empty(null);
  const markets = new Map();
  for (const row of rows) {
    add(whole, row);
    const market = row.issue?.market;
    if (!market) continue;
    if (!markets.has(market)) markets.set(market, empty(market));
    add(markets.get(market), row);
  }
  const size = ({ turnover, issues }) => (turnover ?? 0) + issues / 1e6;
  return [whole, ...[...markets.values()].sort((a, b) => size(b) - size(a))];
}

const empty = (market) => ({ market, issues: 0, up: 0, down: 0, same: 0, turnover: null });

function add(sum, { change, turnover }) {
  sum.issues += 1;
  sum[change.kind || "same"] += 1;
  if (turnover !== null) sum.turnover = (sum.turnover ?? 0) + turnover;
}

const UNITS = [
  [1e12, "T"],
  [1e9, "B"],
  [1e6, "M"],
  [1e3, "K"],
];

// 2918264100 -> "2.92B": three digits for the eye.
export function shortText(number) {
  if (number === null) return "–";
  for (const [unit, letter] of UNITS) {
    // What rounds up to the next unit is written in that.
    if (number >= unit * 0.9995) return `${(number / unit).toPrecision(3).replace(/e.*/, "")}${letter}`;
  }
  return String(Math.round(number));
}
