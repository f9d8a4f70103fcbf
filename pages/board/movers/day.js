// What has risen and fallen most in the day so far, and what was most traded, by what rows show. Pure.

const SHOWN = 2;

// Returns {gainers, losers, value}, a few entries each, the greatest first: {isin, percent, value},
// as of when they were made.
export const dayMovers = (rows) => ({
  gainers: greatest(rows, ({ change }) => change.ratio),
  losers: greatest(rows, ({ change }) => -change.ratio),
  value: greatest(rows, ({ turnover }) => turnover),
});

function greatest(rows, sizeOf) {
  let found = [];
  for (const row of rows) {
    const size = sizeOf(row);
    if (!(size > 0) || (found.length === SHOWN && size <= found.at(-1).size)) continue;
    found = [...found, { row, size }].sort((a, b) => b.size - a.size).slice(0, SHOWN);
  }
  return found.map(({ row: { isin, change, turnover } }) => ({ isin, percent: 100 * change.ratio, value: turnover }));
}
