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

// Of each instrument once: the instrument table's rows stay the same objects until it changes.
const limits = new WeakMap();

function limitsOf(instrument, close) {
  if (!limits.has(instrument)) limits.set(instrument, dailyLimits(close, PERCENT[instrument.market]));
  return limits.get(instrument);
}

// "upper", "lower" or null; null as well where the instrument table does not say that the
// exchange's table of steps holds, or no previous close.
export function limitOf(instrument, price) {
  const close = Number(instrument?.prev_close);
  if (instrument?.tick_table !== "krx" || !(close > 0)) return null;
  const [lowest, highest] = limitsOf(instrument, close);
  return price >= highest ? "upper" : price <= lowest ? "lower" : null;
}
