// Series of a run: what of them is drawn, and the same in words. Pure.

const MOST_POINTS = 1_500; // About as many as a plot has pixels.
const EXTREMES = { greatest: (points) => points.reduce((a, b) => Math.max(a, b)), least: (points) => points.reduce((a, b) => Math.min(a, b)) };
const UNITS = {
  ms: { word: duration, after: "" },
  count: { word: rate, after: "" },
  bytes: { word: size, after: "/s" },
  cores: { word: (share) => (isKnown(share) ? share.toFixed(2) : NONE), after: " cores" },
};

const knownOf = (points) => points.filter(isKnown);
const mostOf = (points) => (knownOf(points).length ? EXTREMES.greatest(knownOf(points)) : null);
const meanOf = (points) => (knownOf(points).length ? knownOf(points).reduce((a, b) => a + b) / knownOf(points).length : null);

// How many points become one, so that at most so many are left.
const stepOf = (points, most = MOST_POINTS) => Math.max(1, Math.ceil(points / most));

// One point for each stretch, the one that stands out; without a measured point, a gap.
function thin(points, step, keeps = "greatest") {
  const stretches = Array.from({ length: Math.ceil(points.length / step) }, (_, place) => points.slice(place * step, (place + 1) * step));
  return stretches.map((stretch) => (knownOf(stretch).length ? EXTREMES[keeps](knownOf(stretch)) : null));
}

// Known points of the measured time, each with its moment: clients joining are not in it.
const measuredOf = ({ from_ms, to_ms }, at, points) =>
  at.map((ms, place) => [ms, points[place]]).filter(([ms, point]) => isKnown(point) && ms >= from_ms && ms <= to_ms);

// A line's middle and its extreme, and when that was.
function lineInWords(outcome, { at, unit }, { points, keeps = "greatest" }) {
  const measured = measuredOf(outcome, at, points);
  if (!measured.length) return "not measured.";
  const word = (point) => UNITS[unit].word(point) + UNITS[unit].after;
  const values = measured.map(([, point]) => point);
  const middle = [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) / 2)];
  const extreme = EXTREMES[keeps](values);
  const [ms] = measured.find(([, point]) => point === extreme);
  return `${word(middle)} in the middle, at ${keeps === "least" ? "least" : "most"} ${word(extreme)} (${elapsed(ms - outcome.from_ms)}).`;
}

// What all processes of one side used together; unknown where none is known.
function usedBy(processes, isOurs, length) {
  const sides = processes.filter(({ is_ours }) => is_ours === isOurs);
  return Array.from({ length }, (_, place) => {
    const shares = knownOf(sides.map(({ cpu }) => cpu[place]));
    return shares.length ? shares.reduce((a, b) => a + b) : null;
  });
}

// Every plot of which something was measured. A line is [name, points, colour's token, dash].
function plotsOf({ windows, seconds, processes }) {
  const dashed = [6, 3];
  const [cpu, ours] = [false, true].map((isOurs) => usedBy(processes, isOurs, seconds.at_ms.length));
  const out = "Received by all clients each second, over a window";
  const byWindow = { at: windows.end_ms, per: "windows" };
  const bySecond = { at: seconds.at_ms, per: "seconds" };
  const plots = [
    { name: "lag", title: "Lag", unit: "ms", shape: "whole", ...byWindow,
      about: "From a window's end until clients that read promptly had it, percentiles over those clients; beneath, until the window was published.",
      lines: [
        { name: "published", points: windows.publish_ms, token: "line-strong", isFilled: true },
        { name: "p50", points: windows.lag_p50_ms, token: "green" },
        { name: "p90", points: windows.lag_p90_ms, token: "accent", dash: dashed },
        { name: "p99", points: windows.lag_p99_ms, token: "amber" },
        { name: "longest", points: windows.lag_max_ms, token: "red", dash: [2, 3] },
      ] },
    { name: "staleness", title: "Staleness", unit: "ms", ...byWindow,
      about: "At random moments, for random keys of random clients: for how long a newer trade than the shown one had been in the log.",
      lines: [
        { name: "mean", points: windows.staleness_mean_ms, token: "accent", isFilled: true },
        { name: "p99", points: windows.staleness_p99_ms, token: "amber", dash: dashed },
      ] },
    { name: "merged", title: "Merged windows", unit: "count", ...byWindow,
      about: "Prompt clients that got this window together with a later one, because they or the gateway were behind.",
      lines: [{ name: "clients", points: windows.merged, token: "amber", isFilled: true }] },
    { name: "rate", title: "Trades in", unit: "count", ...bySecond,
      about: "Trades that fell due each second, and those that the log acknowledged.",
      lines: [
        { name: "appended", points: seconds.append_rate, token: "accent", isFilled: true },
        { name: "due", points: seconds.due_rate, token: "amber", dash: dashed },
      ] },
    { name: "feed.behind", title: "The feed behind its schedule", unit: "ms", ...bySecond,
      about: "Longest time from a trade's due moment to its acknowledgement.",
      lines: [{ name: "behind", points: seconds.behind_ms, token: "accent", isFilled: true }] },
    { name: "conflation", title: "Trades and rows of every window", unit: "count", ...byWindow,
      about: "Trades that fell into a window, and the rows published in their place.",
      lines: [
        { name: "trades", points: windows.trades, token: "accent", isFilled: true },
        { name: "rows", points: windows.rows, token: "amber", dash: dashed },
      ] },
    // Of clients the fewest are kept: what is worth seeing is when they were lost.
    { name: "clients", title: "Clients", unit: "count", ...bySecond, about: "Connected at the same time.",
      lines: [{ name: "connected", points: seconds.clients, token: "accent", isFilled: true, keeps: "least" }] },
    { name: "frames", title: "Frames out", unit: "count", shape: "third", ...bySecond, about: `${out}.`,
      lines: [{ name: "frames", points: seconds.frame_rate, token: "accent", isFilled: true }] },
    { name: "items", title: "Prices out", unit: "count", shape: "third", ...bySecond, about: `${out}, in those frames.`,
      lines: [{ name: "prices", points: seconds.item_rate, token: "accent", isFilled: true }] },
    { name: "bytes", title: "Bytes out", unit: "bytes", shape: "third", ...bySecond, about: `${out}, payload.`,
      lines: [{ name: "bytes", points: seconds.byte_rate, token: "accent", isFilled: true }] },
    { name: "cpu", title: "CPU", unit: "cores", shape: "whole", ...bySecond,
      about: "Cores in use: by the whole machine, by what was tested, and by the load test.",
      lines: [
        { name: "machine", points: seconds.machine_cpu, token: "line-strong", isFilled: true },
        { name: "tested", points: cpu, token: "accent" },
        { name: "load test", points: ours, token: "amber", dash: dashed },
      ] },
  ];
  return plots.filter(({ lines }) => lines.some(({ points }) => knownOf(points).length));
}

// The path of a small line from zero to the most, gaps where a process was not there;
// one unmeasured point between two is none: memory is measured less often.
function sparkPaths(points, most, width, height) {
  const step = stepOf(points.length, width);
  const thinned = thin(points, step);
  const allowed = Math.max(1, Math.floor(10 / step)) + 1;
  const across = width / Math.max(1, thinned.length - 1);
  const runs = [];
  let last = -Infinity;
  thinned.forEach((point, place) => {
    if (!isKnown(point)) return;
    if (place - last > allowed) runs.push([]);
    // The line is two wide: half of it would be cut off at the edge.
    runs.at(-1).push(`${(place * across).toFixed(1)} ${(height - 1 - ((height - 2) * point) / (most || 1)).toFixed(1)}`);
    last = place;
  });
  return runs.map((spots) => `M${(spots.length > 1 ? spots : [spots[0], spots[0]]).join(" L")}`);
}
