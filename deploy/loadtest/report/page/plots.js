// Draws the plots of the report, all along one axis of time.

const HEIGHTS = { whole: 280, half: 190, third: 150 };
const FONT = "12px system-ui, sans-serif";
const FILLS = { accent: "accent-tint", amber: "amber-tint", "line-strong": "hover" };
const shared = uPlot.sync("run");

// A canvas cannot read a token, a probe can.
const probe = element("i", { hidden: "" });
document.body.append(probe);
const colour = (token) => {
  probe.style.color = `var(--${token})`;
  return getComputedStyle(probe).color;
};

// A limit far above all that was measured would press the lines to the ground.
function shownLimits(limits, { name, unit, lines }) {
  const most = Math.max(0, ...lines.map(({ points }) => mostOf(points) ?? 0));
  return limits.filter(({ family, value }) => unit === "ms" && family === name && value <= most * 2.5);
}

// What lies outside of the measured time is there to be seen, but grey.
function shade(plot, { start, until, end }) {
  const { left, top, width, height } = plot.bbox;
  plot.ctx.fillStyle = colour("back");
  for (const [from, to] of [[start, 0], [until, end]]) {
    if (to - from < 1e-6) continue;
    const x = Math.max(left, plot.valToPos(from, "x", true));
    const right = Math.min(left + width, plot.valToPos(to, "x", true));
    if (right > x) plot.ctx.fillRect(x, top, right - x, height);
  }
}

function drawLimits(plot, limits) {
  const { left, width } = plot.bbox;
  const scale = devicePixelRatio;
  plot.ctx.save();
  plot.ctx.font = `${11 * scale}px system-ui, sans-serif`;
  plot.ctx.strokeStyle = plot.ctx.fillStyle = colour("bad");
  plot.ctx.setLineDash([2 * scale, 4 * scale]);
  plot.ctx.textAlign = "right";
  for (const { value, rule } of limits) {
    const y = plot.valToPos(value, "y", true);
    plot.ctx.beginPath();
    plot.ctx.moveTo(left, y);
    plot.ctx.lineTo(left + width, y);
    plot.ctx.stroke();
    plot.ctx.fillText(`fails if ${rule}`, left + width - 4 * scale, y - 6 * scale);
  }
  plot.ctx.restore();
}

// Steps between an axis's labels, so that they are round in what they count.
const powers = (base, most, steps) => Array.from({ length: most }, (_, power) => steps.map((step) => step * base ** power)).flat();
const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800];
const INCREMENTS = { bytes: powers(1024, 5, [1, 2, 5, 10, 20, 50, 100, 200, 500]), count: powers(10, 10, [1, 2, 5]) };

function axes(xWord, xSteps, yWord, ySteps) {
  const look = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, font: FONT };
  return [
    { ...look, space: 60, size: 28, incrs: xSteps, values: (_, splits) => splits.map(xWord) },
    { ...look, space: 28, size: 66, incrs: ySteps, values: (_, splits) => splits.map(yWord) },
  ];
}

const fromZero = (highest) => (_, least, most) => [0, Math.max((most ?? 0) * 1.1, highest * 1.15, 1e-3)];

// The axis of all timelines, in seconds since the measured time began.
function spanOf({ from_ms, to_ms }, plots) {
  const ends = plots.flatMap(({ at }) => [at[0], at.at(-1)]).map((ms) => (ms - from_ms) / 1_000);
  const until = (to_ms - from_ms) / 1_000;
  return { from_ms, until, start: Math.min(0, ...ends), end: Math.max(1, until, ...ends) };
}

function timeline(box, plot, limits, span, width) {
  const step = stepOf(plot.at.length);
  const at = plot.at.filter((_, place) => place % step === 0).map((ms) => (ms - span.from_ms) / 1_000);
  const points = plot.lines.map((line) => thin(line.points, step, line.keeps));
  const { word, after } = UNITS[plot.unit];
  const readOut = (self) => {
    // While the cursor is over any plot, every legend tells what was then.
    const place = self.cursor.idx;
    box.closest(".chart").querySelectorAll(".legend li span").forEach((told, number) => {
      told.dataset.words ??= told.textContent;
      const point = points[number][place];
      told.textContent = isKnown(place)
        ? `${isKnown(point) ? word(point) + after : NONE} at ${elapsed(at[place] * 1_000)}`
        : told.dataset.words;
    });
  };
  const options = {
    width,
    height: HEIGHTS[plot.shape ?? "half"],
    legend: { show: false },
    padding: [10, 22, 0, 0],
    cursor: { y: false, points: { size: 7 }, drag: { x: false, y: false }, sync: { key: shared.key, setSeries: false } },
    scales: {
      x: { time: false, range: () => [span.start, span.end] },
      y: { range: fromZero(Math.max(0, ...limits.map(({ value }) => value))) },
    },
    axes: axes((seconds) => elapsed(seconds * 1_000), SECONDS, word, INCREMENTS[plot.unit]),
    series: [
      {},
      ...plot.lines.map(({ name, token, dash, isFilled }) => ({
        label: name,
        stroke: colour(token),
        width: 1.75,
        dash,
        fill: isFilled ? colour(FILLS[token]) : undefined,
        points: { show: false },
      })),
    ],
    hooks: { drawClear: [(self) => shade(self, span)], draw: [(self) => drawLimits(self, limits)], setCursor: [readOut] },
  };
  return new uPlot(options, [at, ...points], box);
}

function lagByLoad(box, steps, width) {
  const ordered = [...steps].sort((a, b) => a.load - b.load);
  const lags = (isShown) => ordered.map((step) => (isShown(step) ? step.lag_p99_ms : null));
  const dots = (label, token) => ({
    label,
    stroke: colour(token),
    paths: () => null,
    points: { show: true, size: 9, fill: colour(token), stroke: colour(token) },
  });
  const options = {
    width,
    height: 200,
    legend: { show: false },
    padding: [10, 24, 0, 0],
    cursor: { show: false },
    scales: { x: { time: false }, y: { range: fromZero(0) } },
    axes: axes(rate, INCREMENTS.count, duration),
    series: [
      {},
      { label: "lag p99", stroke: colour("line-strong"), width: 1.5, points: { show: false }, spanGaps: true },
      dots("held", "good"),
      dots("broke", "bad"),
    ],
  };
  const isGood = ({ is_good }) => is_good;
  return new uPlot(options, [ordered.map(({ load }) => load), lags(() => true), lags(isGood), lags((step) => !isGood(step))], box);
}

// Draw into a box, again when it or the colours change.
const drawings = [];
function drawIn(box, draw) {
  const drawing = { drawn: draw(box.clientWidth) };
  drawing.again = () => {
    drawing.drawn.destroy();
    drawing.drawn = draw(box.clientWidth);
  };
  drawings.push(drawing);
  new ResizeObserver(() => {
    if (box.clientWidth !== drawing.drawn.width) drawing.drawn.setSize({ width: box.clientWidth, height: drawing.drawn.height });
  }).observe(box);
}
const drawAgain = () => drawings.forEach(({ again }) => again());
