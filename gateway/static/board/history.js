// An issue's windows, oldest first, at most once each. Pure.

const MOST = 1_800;

// The log's windows and those that came meanwhile, as one; the newer word counts.
export function merged(known, more) {
  // Mostly it is one window, the newest.
  if (more.length === 1 && known.length && more[0].window > known.at(-1).window) {
    return [...known.slice(1 - MOST), more[0]];
  }
  const windows = new Map();
  for (const point of [...known, ...more]) windows.set(point.window, point);
  return [...windows.values()].sort((a, b) => a.window - b.window).slice(-MOST);
}

// A chart's time is in whole seconds: of several windows in one, the last counts.
export function chartPoints(windows) {
  const points = new Map();
  for (const { window, price, trades } of windows) {
    const time = Math.floor(window / 1000);
    const before = points.get(time)?.trades ?? 0;
    points.set(time, { time, value: Number(price), trades: trades + before });
  }
  return [...points.values()];
}
