// The windows the charts show: filled once, then appended to. Pure.

// As many as a gateway remembers.
export const KEPT = 450;

// Windows known so far and those of a new answer, oldest first; at most `most` of them. A
// window that is told again is replaced: its fan-out may not have ended the first time.
export function append(known, fresh, most) {
  if (!fresh.length) return known;
  const merged = new Map(known.map((window) => [keyOf(window), window]));
  fresh.forEach((window) => merged.set(keyOf(window), window));
  const sorted = [...merged.values()].sort(
    (a, b) => a.window - b.window || a.offset - b.offset,
  );
  return sorted.slice(-most);
}

// Several jobs may publish parts of one window, each with an offset of its own.
const keyOf = ({ window, offset }) => `${window} ${offset}`;

// How many of the newest windows have to be asked for, to leave no hole.
export function missing(known, newest, windowMs, most) {
  if (!known.length || !newest || !windowMs) return most;
  const behind = Math.ceil((newest - known.at(-1).window) / windowMs);
  return Math.min(Math.max(behind + 3, 3), most);
}

// Columns for a chart: times in seconds, then one list per field. Where windows are
// missing there is an empty point, so that no line is drawn over the hole.
export function columns(windows, fields, windowMs) {
  const table = [[], ...fields.map(() => [])];
  const put = (timeMs, values) =>
    [timeMs / 1000, ...values].forEach((value, column) => table[column].push(value));
  windows.forEach((window, number) => {
    const before = windows[number - 1]?.window;
    if (windowMs && before !== undefined && window.window - before > 1.5 * windowMs) {
      put(before + windowMs, fields.map(() => null));
    }
    put(window.window, fields.map((field) => window[field] ?? null));
  });
  return table;
}

// {newest, median, most, mostAt} of a field, null if it has no value.
export function summary(windows, field) {
  const valued = windows.filter((window) => (window[field] ?? null) !== null);
  if (!valued.length) return null;
  const sorted = valued.map((window) => window[field]).sort((a, b) => a - b);
  const most = valued.reduce((a, b) => (b[field] > a[field] ? b : a));
  return {
    newest: valued.at(-1)[field],
    median: sorted[Math.floor(sorted.length / 2)],
    most: most[field],
    mostAt: most.window,
  };
}

// Trades and rows a second over the newest windows; not known while no windows come.
export function rates(windows, { window_ms: windowMs, is_live: isLive }, newest = 5) {
  const last = windows.slice(-newest);
  if (!last.length || !isLive) return { trades: null, rows: null };
  const seconds = (last.at(-1).window - last[0].window + windowMs) / 1000;
  const sum = (field) => last.reduce((total, window) => total + (window[field] ?? 0), 0);
  return { trades: sum("trades") / seconds, rows: sum("rows") / seconds };
}

// How many entries the log has ever had, with the time: the newest answers, oldest first.
// A log that cannot be counted, or is another one, begins anew.
export function countLog(known, { log, now_ms: nowMs }, most = 6) {
  const counts = log.partitions.map(({ added }) => added ?? null);
  if (!counts.length || counts.includes(null)) return [];
  const fresh = { nowMs, id: log.id, count: counts.reduce((a, b) => a + b, 0) };
  const last = known.at(-1);
  const isSame = last && last.id === fresh.id && last.count <= fresh.count;
  return isSame ? [...known, fresh].slice(-most) : [fresh];
}

// Trades a second that feeds append, by those counts; not known from one alone.
export function feedRate(counts) {
  const [first, last] = [counts[0], counts.at(-1)];
  if (!first || last.nowMs <= first.nowMs) return null;
  return ((last.count - first.count) * 1000) / (last.nowMs - first.nowMs);
}
