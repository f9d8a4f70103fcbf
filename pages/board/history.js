// An instrument's windows, oldest first, at most once each. Pure.

const MOST = 1_800;
const MORE = 200; // so many are let go at once: a chart draws all anew then

// The log's windows and those that came meanwhile, as one; the newer word counts.
export function merged(known, more) {
  // Mostly it is one window, the newest.
  if (more.length === 1 && known.length && more[0].window > known.at(-1).window) {
    const kept = known.length < MOST + MORE ? known : known.slice(1 - MOST);
    return [...kept, more[0]];
  }
  const windows = new Map();
  for (const point of [...known, ...more]) windows.set(point.window, point);
  return [...windows.values()].sort((a, b) => a.window - b.window).slice(-MOST);
}

// The log's windows and those that came before it was read. An update that stood for
// several windows has put a trade into the last of them: the log knows which it was.
export function withLog(log, come) {
  const newest = log.at(-1);
  const isTold = ({ time, price, size }) =>
    newest !== undefined && time === newest.time && price === newest.price && size === newest.size;
  return merged(log, come.filter((point) => point.window === newest?.window || !isTold(point)));
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

// The newest point, if it is all that a chart of the windows before lacks; else null.
export function newPoint(before, windows) {
  const isNext = before.length && windows.length === before.length + 1;
  if (!isNext || windows[0] !== before[0] || windows.at(-2) !== before.at(-1)) return null;
  const second = ({ window }) => Math.floor(window / 1000);
  let from = windows.length - 1;
  while (from > 0 && second(windows[from - 1]) === second(windows.at(-1))) from -= 1;
  return chartPoints(windows.slice(from))[0];
}
