// The charts of an open instrument: windows of two seconds, or bars; and its day in figures.

import { say } from "../../language.js";
import { Chart } from "../chart.js";
import { FigureTable } from "../figure_table.js";
import { Fold } from "../fold.js";
import { eyeText, places, zoneText } from "../format.js";
import { html } from "../html.js";
import { amountText, barText, fullText, INTERVALS, spanText, sumText } from "./bars.js";
import { CandleChart } from "./candle_chart.js";

const TABLE_ROWS = 20;

// Properties: name, isin, windows, kind of the change, feed (bar_feed.js), prevClose,
// onChart(interval or null).
export function InstrumentChart({ name, isin, windows, kind, feed, prevClose, onChart }) {
  const { interval, bars, state } = feed;
  return html`
    <div class="charts">
      <${Intervals} interval=${interval} onChart=${onChart} />
      ${interval === null
        ? html`<div class="greys"><${Chart} key=${isin} name=${name} windows=${windows} kind=${kind} /></div>`
        : html`
            <div class="greys" data-bars=${state}>
              <${CandleChart}
                key=${`${isin} ${interval}`}
                name=${name}
                bars=${bars}
                interval=${interval}
                prevClose=${prevClose}
              />
            </div>
            ${state === "missing" &&
            html`<p class="soft note" role="status">${say("No bars come: the gateway has none, or the analytics job does not run.")}</p>`}
            <${Fold}
              title=${say("Newest bars as a table")}
              content=${() => html`<${Bars} bars=${bars} interval=${interval} name=${name} />`}
            />
          `}
    </div>
  `;
}

// The buttons that choose what is drawn. Properties: interval (null for windows),
// onChart(interval or null).
export const Intervals = ({ interval, onChart }) => html`
  <div class="intervals" role="group" aria-label=${say("Chart")}>
    <${Choice} label=${say("2 s")} name=${say("windows of two seconds")} isPressed=${interval === null} onPress=${() => onChart(null)} />
    ${Object.entries(INTERVALS).map(
      ([name, label]) => html`
        <${Choice}
          key=${name}
          label=${say(label)}
          name=${say("bars of {length}", { length: say(label) })}
          isPressed=${interval === name}
          onPress=${() => onChart(name)}
        />
      `,
    )}
  </div>
`;

function Choice({ label, name, isPressed, onPress }) {
  return html`
    <button type="button" class="quiet" aria-pressed=${isPressed} onClick=${onPress}>
      <span aria-hidden="true">${label}</span><span class="visually-hidden">${name}</span>
    </button>
  `;
}

function Bars({ bars, interval, name }) {
  return html`
    <${FigureTable}
      caption=${say("Newest bars of {name}, newest first", { name })}
      first=${html`${say("Start")} <span class="zone">${zoneText()}</span>`}
      numbers=${[say("price::Open"), say("High"), say("Low"), say("price::Close"), say("Volume")]}
    >
      ${bars
        .slice(-TABLE_ROWS)
        .reverse()
        .map(
          (bar) => html`
            <tr key=${bar.start} title=${barText(bar, interval)}>
              <td>${spanText(bar, interval)}</td>
              ${["open", "high", "low", "close", "volume"].map(
                (field) => html`<td key=${field} class="number">${amountText(bar[field])}</td>`,
              )}
            </tr>
          `,
        )}
    <//>
  `;
}

// For the eye: a digit more than prices have says on which side of them it is.
const vwapText = ({ vwap, close }) =>
  eyeText(Number(vwap).toFixed(Math.min(places(vwap), places(close) + 1)));

// Until the first trade of a new day the newest is the last one: then its date is told.
export function Day({ day, nowMs }) {
  if (day === null) return null;
  const figures = [
    [say("price::Open"), amountText(day.open), day.open],
    [say("High"), amountText(day.high), day.high],
    [say("Low"), amountText(day.low), day.low],
    [say("Volume"), amountText(day.volume), day.volume],
    [say("Value"), sumText(day.value), day.value],
    [say("VWAP"), day.vwap === null ? "–" : vwapText(day), day.vwap],
  ];
  const isOver = nowMs >= day.end;
  return html`
    <dl class="day greys" aria-label=${isOver ? say("Day of {date}", { date: spanText(day, "1d") }) : say("Day")}>
      ${isOver && html`<div><dt>${say("Day")}</dt><dd>${spanText(day, "1d")}</dd></div>`}
      ${figures.map(
        ([title, text, amount]) => html`<div key=${title}><dt>${title}</dt><dd title=${fullText(amount)}>${text}</dd></div>`,
      )}
    </dl>
  `;
}
