// The queries of the analytics job: how far each is, its books, and the state that Spark keeps.

import { html } from "./html.js";
import { Level } from "./level.js";
import { Table } from "./table.js";
import { bytes, clock, count, duration } from "./words.js";

const NUMBER = "number";
const HEADS = [
  ["Query", ""],
  ["State", ""],
  ["Windows closed up to", ""],
  ["Lag", NUMBER],
  ["Trades", NUMBER],
  ["Too late", NUMBER],
  ["Missed", NUMBER],
  ["Rows in state", NUMBER],
  ["Size of state", NUMBER],
  ["Commit", NUMBER],
];

// Nothing is shown where no query has ever run.
export function Analytics({ known: { pipeline } }) {
  const { analytics = [], now_ms: nowMs } = pipeline;
  if (!analytics.length) return null;
  return html`
    <section class="panel" aria-labelledby="analytics-title">
      <h2 id="analytics-title">Analytics</h2>
      <p class="soft note">trades since the query's checkpoint was begun; state after its newest batch</p>
      <${Table} caption="Analytics queries" heads=${HEADS}>
        ${analytics.map((query) => html`<${Line} key=${query.product} query=${query} nowMs=${nowMs} />`)}
      <//>
      ${analytics.flatMap(({ product, problems }) =>
        problems.map((problem) => html`<p key=${product + problem} class="soft">${product}: ${problem}</p>`),
      )}
    </section>
  `;
}

function Line({ query, nowMs }) {
  return html`
    <tr data-query=${query.product}>
      <th scope="row">${query.product}</th>
      <td><${Level} ...${state(query)} /></td>
      <td>${query.window ? clock(query.window, nowMs) : "nothing yet"}</td>
      <td class="number">${query.cut_ms ? duration(query.age_ms) : "–"}</td>
      <td class="number">${count(query.trades)}</td>
      <td class="number">${count(query.too_late)}</td>
      <td class="number">${count(query.missed)}</td>
      <td class="number">${count(query.rows)}</td>
      <td class="number">${bytes(query.bytes)}</td>
      <td class="number">${duration(query.commit_ms)}</td>
    </tr>
  `;
}

function state(query) {
  if (query.problems.length) return { level: "warn", word: "off balance" };
  if (query.is_stopped) return { level: "unknown", word: "stopped" };
  if (query.is_dead) return { level: "warn", word: "dead" };
  return query.is_behind ? { level: "warn", word: "behind" } : { level: "ok", word: "well" };
}
