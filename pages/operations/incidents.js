// The incidents of the last days: what, since when, until when, and what was done.

import { useRef, useState } from "preact/hooks";

import { html } from "../board/html.js";
import { phrase, say } from "../language.js";
import { ask, complaint } from "./api.js";
import { told } from "./gateway_words.js";
import { Level } from "./level.js";
import { Table } from "./table.js";
import { clock, duration } from "./words.js";

const FEW = 5;
const NOTE_CHARS = 500;
const WORDS = { warn: phrase("warning"), bad: phrase("trouble") };
const NUMBER = "number";
const HEADS = [
  [phrase("What"), ""],
  [phrase("Severity"), ""],
  [phrase("Since"), NUMBER],
  [phrase("Until"), NUMBER],
  [phrase("For"), NUMBER],
  [phrase("What was done"), ""],
];

export function Incidents({ known, watcher }) {
  const { incidents, complaints, pipeline } = known;
  const [isAll, setAll] = useState(false);
  const [noted, setNoted] = useState(null);
  const [problem, setProblem] = useState("");
  const dialog = useRef(null);
  const all = incidents?.data ?? [];
  const open = (incident) => {
    setNoted({ id: incident.id, text: incident.text, note: incident.note });
    setProblem("");
    dialog.current.showModal();
  };
  const write = async (event) => {
    event.preventDefault();
    const answer = await written(noted);
    setProblem(answer.isOk ? "" : complaint(answer));
    if (answer.isOk) dialog.current.close();
    watcher.now();
  };
  return html`
    <section class="panel" aria-labelledby="incidents-title">
      <h2 id="incidents-title">${say("Incidents")}</h2>
      ${complaints.incidents && html`<p class="complaint">${complaints.incidents}</p>`}
      ${all.length === 0
        ? html`<p class="soft note">${say("None in the last 14 days that this gateway remembers.")}</p>`
        : html`
            <div class="incidents">
              <${Table} caption=${say("Incidents, those that last first")} heads=${HEADS}>
                ${(isAll ? all : all.slice(0, FEW)).map(
                  (one) => html`<${Line} key=${one.id} incident=${one} nowMs=${pipeline.now_ms} onNote=${() => open(one)} />`,
                )}
              <//>
            </div>
            ${all.length > FEW &&
            html`<button type="button" id="all-incidents" aria-expanded=${isAll} onClick=${() => setAll(!isAll)}>
              ${isAll ? say("Show fewer") : say("Show all {count}", { count: all.length })}
            </button>`}
          `}
      <dialog ref=${dialog} aria-labelledby="note-title">
        <form onSubmit=${write}>
          <h3 id="note-title">${say("What was done?")}</h3>
          <p><label for="note">${noted && told(noted.text)}</label></p>
          <p>
            <input id="note" maxlength=${NOTE_CHARS} autocomplete="off" value=${noted?.note ?? ""}
              onInput=${(event) => setNoted({ ...noted, note: event.target.value })} />
          </p>
          ${problem && html`<p class="complaint">${problem}</p>`}
          <p class="choice">
            <button type="submit" id="write-note">${say("Save note")}</button>
            <button type="button" onClick=${() => dialog.current.close()}>${say("Leave it")}</button>
          </p>
        </form>
      </dialog>
    </section>
  `;
}

function Line({ incident, nowMs, onNote }) {
  const { code, level, text, detail, since_ms: sinceMs, until_ms: untilMs, times, note } = incident;
  const verb = note ? say("Change note") : say("Note");
  const what = told(text);
  const since = clock(sinceMs, nowMs);
  const label = note
    ? say("Change note on {what}, {time}", { what, time: since })
    : say("Note on {what}, {time}", { what, time: since });
  return html`
    <tr data-incident=${code} data-lasts=${untilMs === null}>
      <th scope="row" title=${detail ? told(detail) : undefined}>
        ${what}${times > 1 && html` <span class="soft">(${say("{count} time|{count} times", { count: times })})</span>`}
      </th>
      <td><${Level} level=${level} word=${say(WORDS[level])} /></td>
      <td class="number">${since}</td>
      <td class="number">${untilMs === null ? say("lasts") : clock(untilMs, nowMs)}</td>
      <td class="number">${duration((untilMs ?? nowMs) - sinceMs)}</td>
      <td class="done">
        ${note}${" "}
        <button type="button" class="small" aria-label=${label} onClick=${onNote}>${verb}</button>
      </td>
    </tr>
  `;
}

function written({ id, note }) {
  const path = `v1/incidents/${encodeURIComponent(id)}/note?text=${encodeURIComponent(note.trim())}`;
  return ask(path, { method: "PUT" });
}
