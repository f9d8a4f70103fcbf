// The archives: how far each has stored what was published, and what it lacks.

import { html } from "../board/html.js";
import { phrase, say } from "../language.js";
import { told } from "./gateway_words.js";
import { Level } from "./level.js";
import { Table } from "./table.js";
import { ago, bytes, clock, count } from "./words.js";

const NUMBER = "number";
const HEADS = [
  [phrase("Archive"), ""],
  [phrase("State"), ""],
  [phrase("Stored up to"), ""],
  [phrase("Windows"), NUMBER],
  [phrase("Rows"), NUMBER],
  [phrase("Bars"), NUMBER],
  [phrase("Without a name"), NUMBER],
  [phrase("Gaps"), NUMBER],
  [phrase("bytes::Size"), NUMBER],
];

// Nothing is shown where nothing is archived.
export function Archives({ known: { pipeline } }) {
  const { archives = [], archive_damage: damage = [], now_ms: nowMs } = pipeline;
  if (!archives.length) return null;
  return html`
    <section class="panel" aria-labelledby="archives-title">
      <h2 id="archives-title">${say("Archive")}</h2>
      <p class="soft note">${say("windows, rows, bars and gaps since the archive was started; size of all that it keeps")}</p>
      <${Table} caption=${say("Archives")} heads=${HEADS}>
        ${archives.map((archive) => html`<${Line} key=${archive.name} archive=${archive} nowMs=${nowMs} />`)}
      <//>
      ${archives
        .flatMap((archive) => [archive.problem ?? archive.last_gap, archive.tidy_problem, ...archive.damaged]
          .filter(Boolean)
          .map((text) => html`<p key=${archive.name + text} class="soft">${archive.name}: ${told(text)}</p>`))}
      ${damage.map((text) => html`<p key=${text} class="soft">${text}</p>`)}
    </section>
  `;
}

function Line({ archive, nowMs }) {
  const { window } = archive;
  return html`
    <tr data-archive=${archive.name}>
      <th scope="row">${archive.name}</th>
      <td><${Level} ...${state(archive)} /></td>
      <td>${window ? `${clock(window, nowMs)}, ${ago(nowMs - window)}` : say("nothing yet")}</td>
      <td class="number">${count(archive.windows)}</td>
      <td class="number">${count(archive.rows)}</td>
      <td class="number">${count(archive.bars)}</td>
      <td class="number" title=${archive.unknown.join(", ") || undefined}>${count(archive.unknown_instrument)}</td>
      <td class="number">${count(archive.gaps + archive.bar_gaps)}</td>
      <td class="number">${bytes(archive.stored_bytes)}</td>
    </tr>
  `;
}

function state(archive) {
  if (archive.is_stopped) return { level: "unknown", word: say("stopped") };
  if (archive.problem) return { level: "warn", word: say("cannot store") };
  if (archive.damaged_segments) return { level: "warn", word: say("damaged") };
  return archive.is_behind ? { level: "warn", word: say("behind") } : { level: "ok", word: say("well") };
}
