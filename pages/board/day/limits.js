// Whether a price is at the day's limit of the Korean exchange. Pure.
//
// KRX: 30 % of the previous close, 15 % on KONEX, cut to the price step there; the upper
// limit is then cut to the step at its own level. The steps are those since 2023-01-25,
// which are those of `daily_limits` in ingest/sources/market.py: a test compares the two.

const STEPS = [
  [2_000, 1],
  [5_000, 5],
  [20_000, 10],
  [50_000, 50],
  [200_000, 100],
  [500_000, 500],
  [Infinity, 1_000],
];
const PERCENT = { KONEX: 15 };
const USUAL_PERCENT = 30;

const stepAt = (price) => STEPS.find(([below]) => price < below)[1];

// [lowest, highest] price of a day, in won.
export function dailyLimits(close, percent = USUAL_PERCENT) {
  const step = stepAt(close);
  const width = Math.floor(Math.floor((close * percent) / 100) / step) * step;
  const upper = close + width;
  return [close - width, upper - (upper % stepAt(upper))];
}

// Of each issue once: the issue table's rows stay the same objects until it changes.
const limits = new WeakMap();

function limitsOf(issue, close) {
  if (!limits.has(issue)) limits.set(issue, dailyLimits(close, PERCENT[issue.market]));
  return limits.get(issue);
}

// "upper", "lower" or null; null as well where the issue table does not say that the
// exchange's table of steps holds, or no previous close.
export function limitOf(issue, price) {
  const close = Number(issue?.prev_close);
  if (issue?.tick_table !== "krx" || !(close > 0)) return null;
  const [lowest, highest] = limitsOf(issue, close);
  return price >= highest ? "upper" : price <= lowest ? "lower" : null;
}
