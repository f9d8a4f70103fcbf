// The ledger: what became of every trade, per job and partition.

import { html } from "../board/html.js";
import { phrase, say } from "../language.js";
import { decoded, reasons, refused } from "./books.js";
import { told } from "./gateway_words.js";
import { Level } from "./level.js";
import { Table } from "./table.js";
import { count } from "./words.js";

const NUMBER = "number";
const HEADS = [
  [phrase("Partition"), ""],
  [phrase("Read"), NUMBER],
  [phrase("Published"), NUMBER],
  [phrase("Superseded"), NUMBER],
  [phrase("trades::Stale"), NUMBER],
  [phrase("Not last"), NUMBER],
  [phrase("Refused"), NUMBER],
  [phrase("The log's count"), NUMBER],
  [phrase("Balance"), ""],
  [phrase("Waiting"), NUMBER],
  [phrase("Read up to"), "number code"],
  [phrase("Log's end"), "number code"],
];

const FIGURES = ["read", "published", "superseded", "stale", "not_last"];

// As text, with every digit: they may have more than a number keeps.
function amounts({ volume, value }, name) {
  if (volume[name] === undefined) return undefined;
  return say("volume {volume}, value {value}", { volume: volume[name], value: value[name] });
}

export function Ledger({ known: { pipeline } }) {
  const { jobs, diagnosis } = pipeline;
  const none =
    diagnosis.stages.job.level === "unknown"
      ? say("The books cannot be read at the moment.")
      : say("No job has books yet.");
  return html`
    <section class="panel" aria-labelledby="ledger-title">
      <h2 id="ledger-title">${say("Ledger")}</h2>
      <p class="soft note">
        ${say(
          "read = published + superseded (older in the same window) + stale (older than what was published) + not last (it does not count for the last price) + refused, and the log has counted as many; a decoder may skip entries, and find several trades in one",
        )}
      </p>
      ${jobs.length
        ? jobs.map((job) => html`<${Books} key=${job.job} job=${job} />`)
        : html`<p class="empty soft">${none}</p>`}
    </section>
  `;
}

function Books({ job }) {
  const { problems, total, balanced: isBalanced } = job;
  const word = isBalanced
    ? say("balanced")
    : say("{count} problem|{count} problems", { count: problems.length });
  const activity = job.is_retired
    ? say("not running, others read its partitions")
    : job.is_active
      ? say("active")
      : say("not running");
  const batches = say("{count} batch|{count} batches", { count: job.batches });
  const windows = say("{count} window|{count} windows", { count: job.windows });
  return html`
    <div class="books greys" data-job=${job.job}>
      <h3>
        ${job.job} <span class="soft">${activity}</span>
        <${Level} level=${isBalanced ? "ok" : "bad"} word=${word} />
        <span class="soft">${batches}, ${windows}</span>
      </h3>
      ${problems.length > 0 && html`<ul class="problems">${problems.map((problem) => html`<li key=${problem}>${told(problem)}</li>`)}</ul>`}
      ${decoded(total) && html`<p class="soft">${decoded(total)}</p>`}
      <${Table} caption=${say("Ledger of job {job}", { job: job.job })} heads=${HEADS}
        foot=${html`<${Line} name=${say("every partition::all")} books=${total} />`}>
        ${job.partitions.map((books) => html`<${Line} key=${books.partition} name=${books.partition} books=${books} />`)}
      <//>
    </div>
  `;
}

function Line({ name, books }) {
  const { imbalance } = books;
  const word = imbalance === null ? say("balanced") : told(imbalance);
  return html`
    <tr>
      <th scope="row">${name}</th>
      ${FIGURES.map((name) => html`<td key=${name} class="number" title=${amounts(books, name)}>${count(books[name])}</td>`)}
      <td class="number" title=${reasons(books) || undefined}>${count(refused(books))}</td>
      <td class="number">${count(books.log)}</td>
      <td><${Level} level=${imbalance === null ? "ok" : "bad"} word=${word} /></td>
      <td class="number">${count(books.lag)}</td>
      <td class="number code">${books.position ?? "–"}</td>
      <td class="number code">${books.end ?? "–"}</td>
    </tr>
  `;
}
