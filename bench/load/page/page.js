// Draws the plots of the report, all along one axis of time. Stands after uPlot in one
// module, so a block keeps our names apart from its own.
{
  const { plots, capacity } = JSON.parse(document.getElementById("data").textContent);
  const HEIGHTS = { whole: 280, half: 190, third: 150 };
  const FONT = "12px system-ui, sans-serif";
  const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
  const shared = uPlot.sync("run");
  const root = document.documentElement;

  // A canvas cannot read a token, a probe can.
  const probe = document.createElement("i");
  probe.hidden = true;
  document.body.append(probe);
  const colour = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };

  const short = (number) => {
    for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]])
      if (Math.abs(number) >= size * 10) return `${+(number / size).toPrecision(4)}${unit}`;
    return number >= 10 || Number.isInteger(number) ? WHOLE.format(number) : number.toFixed(1);
  };
  const bytes = (number) => {
    const units = ["B", "KiB", "MiB", "GiB"];
    while (number >= 999.5 && units.length > 1) {
      number /= 1024;
      units.shift();
    }
    return `${number < 9.95 && number % 1 ? number.toFixed(1) : Math.round(number)} ${units[0]}`;
  };
  const duration = (ms) =>
    ms >= 10_000 ? `${+(ms / 1000).toFixed(1)} s` : ms >= 10 || ms === 0 ? `${WHOLE.format(ms)} ms` : `${+ms.toFixed(2)} ms`;
  const WORDS = { ms: duration, count: short, bytes, cores: (share) => `${+share.toFixed(2)}` };

  const elapsed = (seconds) => {
    const whole = Math.floor(Math.abs(seconds));
    const pad = (number) => String(number).padStart(2, "0");
    const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
    return `${seconds < 0 ? "-" : ""}${hours ? `${hours}:${pad(minutes)}` : minutes}:${pad(whole % 60)}`;
  };

  const start = Math.min(0, ...plots.map(({ at }) => at[0] ?? 0));
  const end = Math.max(1, ...plots.map(({ at, until }) => Math.max(until, at.at(-1) ?? 0)));

  // A limit far above all that was measured would press the lines to the ground.
  const shownLimits = ({ limits, lines }) => {
    const most = Math.max(0, ...lines.flatMap(({ points }) => points.filter((point) => point !== null)));
    return limits.filter(({ value }) => value <= most * 2.5);
  };

  // What lies outside of the measured time is there to be seen, but grey.
  function shade(plot, until) {
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
    const ratio = devicePixelRatio;
    plot.ctx.save();
    plot.ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    plot.ctx.strokeStyle = plot.ctx.fillStyle = colour("bad");
    plot.ctx.setLineDash([2 * ratio, 4 * ratio]);
    plot.ctx.textAlign = "right";
    for (const { value, text } of limits) {
      const y = plot.valToPos(value, "y", true);
      plot.ctx.beginPath();
      plot.ctx.moveTo(left, y);
      plot.ctx.lineTo(left + width, y);
      plot.ctx.stroke();
      plot.ctx.fillText(`fails if ${text}`, left + width - 4 * ratio, y - 6 * ratio);
    }
    plot.ctx.restore();
  }

  // Steps between an axis's labels, so that they are round in what they count.
  const powers = (base, most, steps) =>
    Array.from({ length: most }, (_, power) => steps.map((step) => step * base ** power)).flat();
  const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800];
  const INCREMENTS = { bytes: powers(1024, 5, [1, 2, 5, 10, 20, 50, 100, 200, 500]), count: powers(10, 10, [1, 2, 5]) };

  function axes(xValues, xSteps, word, ySteps) {
    const look = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, font: FONT };
    return [
      { ...look, space: 60, size: 28, incrs: xSteps, values: (_, splits) => splits.map(xValues) },
      { ...look, space: 28, size: 66, incrs: ySteps, values: (_, splits) => splits.map(word) },
    ];
  }

  const line = ({ name, colour: token, dash, fill }) => ({
    label: name,
    stroke: colour(token),
    width: 1.75,
    dash: dash.length ? dash : undefined,
    fill: fill ? colour(FILLS[token] ?? "hover") : undefined,
    points: { show: false },
  });
  const FILLS = { accent: "accent-tint", amber: "amber-tint", "line-strong": "hover" };

  const fromZero = (highest) => (_, least, most) => [0, Math.max((most ?? 0) * 1.1, highest * 1.15, 1e-3)];

  function timeline(box, plot, width, height) {
    const limits = shownLimits(plot);
    const highest = Math.max(0, ...limits.map(({ value }) => value));
    const word = WORDS[plot.unit];
    return new uPlot(
      {
        width,
        height,
        legend: { show: false },
        padding: [10, 22, 0, 0],
        cursor: { y: false, points: { size: 7 }, drag: { x: false, y: false }, sync: { key: shared.key, setSeries: false } },
        scales: { x: { time: false, range: () => [start, end] }, y: { range: fromZero(highest) } },
        axes: axes(elapsed, SECONDS, word, INCREMENTS[plot.unit]),
        series: [{}, ...plot.lines.map(line)],
        hooks: {
          drawClear: [(self) => shade(self, plot.until)],
          draw: [(self) => drawLimits(self, limits)],
          setCursor: [(self) => readOut(box, self, plot, word)],
        },
      },
      [plot.at, ...plot.lines.map(({ points }) => points)],
      box,
    );
  }

  // While the cursor is over any plot, every legend tells what was then.
  function readOut(box, self, plot, word) {
    const at = self.cursor.idx;
    box.closest(".chart").querySelectorAll(".legend li span").forEach((span, number) => {
      span.dataset.words ??= span.textContent;
      const point = at === null || at === undefined ? null : plot.lines[number].points[at];
      if (at === null || at === undefined) span.textContent = span.dataset.words;
      else span.textContent = `${point === null ? "–" : word(point)} at ${elapsed(plot.at[at])}`;
    });
  }

  function byLoad(box, { steps }, width) {
    const of = (isGood) => steps.map(([, lag, good]) => (good === isGood ? lag : null));
    const dots = (label, token) => ({
      label,
      stroke: colour(token),
      paths: () => null,
      points: { show: true, size: 9, fill: colour(token), stroke: colour(token) },
    });
    return new uPlot(
      {
        width,
        height: 200,
        legend: { show: false },
        padding: [10, 24, 0, 0],
        cursor: { show: false },
        scales: { x: { time: false }, y: { range: fromZero(0) } },
        axes: axes(short, INCREMENTS.count, duration),
        series: [
          {},
          { label: "lag p99", stroke: colour("line-strong"), width: 1.5, points: { show: false }, spanGaps: true },
          dots("held", "good"),
          dots("broke", "bad"),
        ],
      },
      [steps.map(([load]) => load), steps.map(([, lag]) => lag), of(true), of(false)],
      box,
    );
  }

  const drawings = [];
  for (const box of document.querySelectorAll("[data-plot]")) {
    const name = box.dataset.plot;
    const plot = plots.find((one) => one.name === name);
    const chart = box.closest(".chart");
    const size = Object.keys(HEIGHTS).find((one) => chart?.classList.contains(one));
    const draw = () =>
      name === "capacity" ? byLoad(box, capacity, box.clientWidth) : timeline(box, plot, box.clientWidth, HEIGHTS[size]);
    const drawing = { drawn: draw() };
    drawing.again = () => {
      drawing.drawn.destroy();
      drawing.drawn = draw();
    };
    drawings.push(drawing);
    new ResizeObserver(() => {
      if (box.clientWidth !== drawing.drawn.width) drawing.drawn.setSize({ width: box.clientWidth, height: drawing.drawn.height });
    }).observe(box);
  }
  const drawAgain = () => drawings.forEach(({ again }) => again());

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  dark.addEventListener("change", drawAgain);
  const button = document.getElementById("theme");
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    drawAgain();
  });

  // Paper is white.
  let chosen;
  addEventListener("beforeprint", () => {
    chosen = root.dataset.theme;
    root.dataset.theme = "light";
    drawAgain();
  });
  addEventListener("afterprint", () => {
    if (chosen) root.dataset.theme = chosen;
    else delete root.dataset.theme;
    drawAgain();
  });
}
