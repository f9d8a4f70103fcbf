// The ledger: what became of every trade, per job and partition.

import { decoded, reasons, refused } from "./books.js";
import { html } from "./html.js";
import { Level } from "./level.js";
import { Table } from "./table.js";
import { count, plural } from "./words.js";

const NUMBER = "number";
const HEADS = [
  ["Partition", ""],
  ["Read", NUMBER],
  ["Published", NUMBER],
  ["Superseded", NUMBER],
  ["Stale", NUMBER],
  ["Refused", NUMBER],
  ["The log's count", NUMBER],
  ["Balance", ""],
  ["Waiting", NUMBER],
  ["Read up to", "number code"],
  ["Log's end", "number code"],
];

export function Ledger({ known: { pipeline } }) {
  const { jobs, diagnosis } = pipeline;
  return html`
    <section class="panel" aria-labelledby="ledger-title">
      <h2 id="ledger-title">Ledger</h2>
      <p class="soft note">
        read = published + superseded (older in the same window) + stale (older than what was published) + refused,
        and the log has counted as many; a decoder may skip entries, and find several trades in one
      </p>
      ${jobs.length
        ? jobs.map((job) => html`<${Books} key=${job.job} job=${job} />`)
        : html`<p class="empty soft">${diagnosis.stages.job.level === "unknown" ? "The books cannot be read at the moment." : "No job has books yet."}</p>`}
    </section>
  `;
}

function Books({ job }) {
  const { problems, total, balanced: isBalanced } = job;
  const word = isBalanced ? "balanced" : plural(problems.length, "problem");
  return html`
    <div class="books greys" data-job=${job.job}>
      <h3>
        ${job.job} <span class="soft">${job.is_retired ? "not running, others read its partitions" : job.is_active ? "active" : "not running"}</span>
        <${Level} level=${isBalanced ? "ok" : "bad"} word=${word} />
        <span class="soft">${plural(job.batches, "batch", "batches")}, ${plural(job.windows, "window")}</span>
      </h3>
      ${problems.length > 0 && html`<ul class="problems">${problems.map((problem) => html`<li key=${problem}>${problem}</li>`)}</ul>`}
      ${decoded(total) && html`<p class="soft">${decoded(total)}</p>`}
      <${Table} caption=${`Ledger of job ${job.job}`} heads=${HEADS}
        foot=${html`<${Line} name="all" books=${total} />`}>
        ${job.partitions.map((books) => html`<${Line} key=${books.partition} name=${books.partition} books=${books} />`)}
      <//>
    </div>
  `;
}

function Line({ name, books }) {
  return html`
    <tr>
      <th scope="row">${name}</th>
      <td class="number">${count(books.read)}</td>
      <td class="number">${count(books.published)}</td>
      <td class="number">${count(books.superseded)}</td>
      <td class="number">${count(books.stale)}</td>
      <td class="number" title=${reasons(books) || undefined}>${count(refused(books))}</td>
      <td class="number">${count(books.log)}</td>
      <td><${Level} level=${books.imbalance === null ? "ok" : "bad"} word=${books.imbalance ?? "balanced"} /></td>
      <td class="number">${count(books.lag)}</td>
      <td class="number code">${books.position ?? "–"}</td>
      <td class="number code">${books.end ?? "–"}</td>
    </tr>
  `;
}
