// Lag and rate over time, each with the same in words and as a table.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";

import { html } from "../board/html.js";
import { phrase, say } from "../language.js";
import { colour, onColours } from "../shell.js";
import { columns, summary } from "./history.js";
import { clock, count, duration } from "./words.js";

const HEIGHT = 190;
const ROWS = 15;

const CHARTS = [
  {
    id: "lag",
    title: phrase("Lag of every window"),
    about: phrase("from a window's end until it is published, and until the last client was sent it"),
    word: duration,
    axis: (ms) => (ms >= 1000 ? `${ms / 1000} s` : `${ms} ms`),
    series: [
      { field: "publish_lag_ms", name: phrase("publish"), colour: "accent" },
      { field: "fanout_lag_ms", name: phrase("fan-out"), colour: "amber", dash: [5, 3] },
    ],
  },
  {
    id: "rate",
    title: phrase("Rate of every window"),
    about: phrase("trades that came in, and rows that went out in their place"),
    word: count,
    axis: count,
    series: [
      { field: "trades", name: phrase("trades in"), colour: "accent" },
      { field: "rows", name: phrase("rows out"), colour: "amber", dash: [5, 3] },
    ],
  },
];

export function Charts({ known: { windows, pipeline, complaints } }) {
  return html`
    <div class="pair greys">
      ${CHARTS.map(
        (chart) => html`<${Chart} key=${chart.id} chart=${chart} windows=${windows}
          nowMs=${pipeline.now_ms} windowMs=${pipeline.stream?.window_ms} complaint=${complaints.windows} />`,
      )}
    </div>
  `;
}

function Chart({ chart, windows, windowMs, nowMs, complaint }) {
  const words = chart.series.map((one) => inWords(one, chart, windows));
  return html`
    <section class="panel chart" aria-labelledby=${`${chart.id}-title`}>
      <h2 id=${`${chart.id}-title`}>${say(chart.title)}</h2>
      <p class="soft note">${say(chart.about)}</p>
      ${complaint && html`<p class="complaint">${complaint}</p>`}
      ${windows.length > 0
        ? html`<div class="plot" role="img" aria-label=${`${say(chart.title)}. ${words.join(" ")}`}>
            <${Plot} chart=${chart} windows=${windows} windowMs=${windowMs} nowMs=${nowMs} />
          </div>`
        : html`<p class="empty soft">${say("No window since the gateway's start.")}</p>`}
      <ul class="legend">
        ${chart.series.map(
          (one, number) => html`<li key=${one.field}>
            <svg viewBox="0 0 22 8" aria-hidden="true"><path d="M0 4h22" stroke=${`var(--${one.colour})`} stroke-width="3" stroke-dasharray=${one.dash?.join(" ") ?? "none"} /></svg>
            ${words[number]}
          </li>`,
        )}
      </ul>
      ${windows.length > 0 && html`<${AsTable} chart=${chart} windows=${windows} />`}
    </section>
  `;
}

function inWords({ field, name }, { word }, windows) {
  const found = summary(windows, field);
  if (found === null) return say("{name}: nothing yet.", { name: say(name) });
  const { newest, median, most, mostAt } = found;
  return say("{name}: {newest} newest, median {median}, {most} at most ({time}).", {
    name: say(name),
    newest: word(newest),
    median: word(median),
    most: word(most),
    time: clock(mostAt, windows.at(-1).window),
  });
}

function AsTable({ chart, windows }) {
  return html`
    <details>
      <summary>${say("The newest {count} window as a table|The newest {count} windows as a table", { count: Math.min(ROWS, windows.length) })}</summary>
      <table>
        <caption class="visually-hidden">${say("{title}, newest first", { title: say(chart.title) })}</caption>
        <thead>
          <tr>
            <th scope="col">${say("Window's end")}</th>
            ${chart.series.map(({ name }) => html`<th scope="col" class="number">${say(name)}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${windows.slice(-ROWS).reverse().map(
            (window) => html`<tr key=${`${window.window} ${window.offset}`}>
              <th scope="row">${clock(window.window)}</th>
              ${chart.series.map(({ field }) => html`<td class="number">${chart.word(window[field])}</td>`)}
            </tr>`,
          )}
        </tbody>
      </table>
    </details>
  `;
}

// Draws anew when colours change, otherwise takes the new points only. It always ends now:
// where windows are missing, the line is seen to have stopped.
function Plot({ chart, windows, windowMs, nowMs }) {
  const box = useRef(null);
  const plot = useRef(null);
  const data = useRef(null);
  const now = useRef(null);
  now.current = nowMs;
  data.current = columns(windows, chart.series.map(({ field }) => field), windowMs);
  useEffect(() => {
    const draw = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(chart, box.current.clientWidth, now), data.current, box.current);
    };
    draw();
    const resized = new ResizeObserver(() =>
      plot.current.setSize({ width: box.current.clientWidth, height: HEIGHT }),
    );
    resized.observe(box.current);
    const forget = onColours(draw);
    return () => {
      forget();
      resized.disconnect();
      plot.current.destroy();
    };
  }, []);
  useEffect(() => {
    plot.current?.setData(data.current);
  }, [windows, nowMs]);
  return html`<div ref=${box}></div>`;
}

function options({ series, axis }, width, now) {
  const soft = colour("soft");
  const grid = { stroke: colour("line"), width: 1 };
  const ticks = { show: false };
  const font = "12px system-ui, sans-serif";
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    padding: [8, 28, 0, 0],
    cursor: { y: false, points: { size: 7 } },
    scales: {
      x: { range: (plot, least) => [least, now.current / 1000] },
      y: { range: (plot, least, most) => [0, Math.max(most * 1.15, 1)] },
    },
    axes: [
      {
        stroke: soft,
        grid,
        ticks,
        font,
        space: 70,
        size: 32,
        values: (plot, splits, axisAt, space, step) =>
          splits.map((seconds) => clock(seconds * 1000).slice(0, step < 60 ? 8 : 5)),
      },
      { stroke: soft, grid, ticks, font, size: 58, values: (plot, splits) => splits.map(axis) },
    ],
    series: [
      {},
      ...series.map((one, number) => ({
        label: say(one.name),
        stroke: colour(one.colour),
        width: 1.75,
        dash: one.dash,
        fill: number === 0 ? colour(`${one.colour}-tint`) : undefined,
        points: { show: false },
      })),
    ],
  };
}
