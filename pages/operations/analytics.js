// The queries of the analytics job: how far each is, its books, and the state that Spark keeps.

import { html } from "../board/html.js";
import { phrase, say } from "../language.js";
import { told } from "./gateway_words.js";
import { Level } from "./level.js";
import { Table } from "./table.js";
import { bytes, clock, count, duration } from "./words.js";

const NUMBER = "number";
const HEADS = [
  [phrase("Query"), ""],
  [phrase("State"), ""],
  [phrase("Windows closed up to"), ""],
  [phrase("Lag"), NUMBER],
  [phrase("Trades"), NUMBER],
  [phrase("Too late"), NUMBER],
  [phrase("Missed"), NUMBER],
  [phrase("Rows in state"), NUMBER],
  [phrase("Size of state"), NUMBER],
  [phrase("Commit"), NUMBER],
];

// Nothing is shown where no query has ever run.
export function Analytics({ known: { pipeline } }) {
  const { analytics = [], now_ms: nowMs } = pipeline;
  if (!analytics.length) return null;
  return html`
    <section class="panel" aria-labelledby="analytics-title">
      <h2 id="analytics-title">${say("Analytics")}</h2>
      <p class="soft note">${say("trades since the query's checkpoint was begun; state after its newest batch")}</p>
      <${Table} caption=${say("Analytics queries")} heads=${HEADS}>
        ${analytics.map((query) => html`<${Line} key=${query.product} query=${query} nowMs=${nowMs} />`)}
      <//>
      ${analytics.flatMap(({ product, problems }) =>
        problems.map((problem) => html`<p key=${product + problem} class="soft">${product}: ${told(problem)}</p>`),
      )}
    </section>
  `;
}

function Line({ query, nowMs }) {
  return html`
    <tr data-query=${query.product}>
      <th scope="row">${query.product}</th>
      <td><${Level} ...${state(query)} /></td>
      <td>${query.window ? clock(query.window, nowMs) : say("nothing yet")}</td>
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
  if (query.problems.length) return { level: "warn", word: say("off balance") };
  if (query.is_stopped) return { level: "unknown", word: say("stopped") };
  if (query.is_dead) return { level: "warn", word: say("dead") };
  return query.is_behind ? { level: "warn", word: say("behind") } : { level: "ok", word: say("well") };
}
