// The incidents of the last days: what, since when, until when, and what was done.

import { useRef, useState } from "preact/hooks";

import { NoAnswer, ask, complaint } from "./api.js";
import { html } from "./html.js";
import { Level } from "./level.js";
import { Table } from "./table.js";
import { clock, duration, plural } from "./words.js";

const FEW = 5;
const NOTE_CHARS = 500;
const WORDS = { warn: "warning", bad: "trouble" };
const HEADS = [
  ["What", ""],
  ["How bad", ""],
  ["Since", "number"],
  ["Until", "number"],
  ["For", "number"],
  ["What was done", ""],
];

export function Incidents({ known, watcher }) {
  const { incidents, complaints, pipeline } = known;
  const [isAll, setAll] = useState(false);
  const [noted, setNoted] = useState(null);
  const [told, setTold] = useState("");
  const dialog = useRef(null);
  const all = incidents?.data ?? [];
  const open = (incident) => {
    setNoted({ id: incident.id, text: incident.text, note: incident.note });
    setTold("");
    dialog.current.showModal();
  };
  const write = async (event) => {
    event.preventDefault();
    const problem = await written(noted);
    setTold(problem);
    if (problem === "") dialog.current.close();
    watcher.now();
  };
  return html`
    <section class="panel" aria-labelledby="incidents-title">
      <h2 id="incidents-title">Incidents</h2>
      ${complaints.incidents && html`<p class="complaint">${complaints.incidents}</p>`}
      ${all.length === 0
        ? html`<p class="soft note">None in the last 14 days that this gateway remembers.</p>`
        : html`
            <div class="incidents">
              <${Table} caption="Incidents, those that last first" heads=${HEADS}>
                ${(isAll ? all : all.slice(0, FEW)).map(
                  (one) => html`<${Line} key=${one.id} incident=${one} nowMs=${pipeline.now_ms} onNote=${() => open(one)} />`,
                )}
              <//>
            </div>
            ${all.length > FEW &&
            html`<button type="button" id="all-incidents" aria-expanded=${isAll} onClick=${() => setAll(!isAll)}>
              ${isAll ? "Show fewer" : `Show all ${all.length}`}
            </button>`}
          `}
      <dialog ref=${dialog} aria-labelledby="note-title">
        <form onSubmit=${write}>
          <h3 id="note-title">What was done?</h3>
          <p><label for="note">${noted?.text}</label></p>
          <p>
            <input id="note" maxlength=${NOTE_CHARS} autocomplete="off" value=${noted?.note ?? ""}
              onInput=${(event) => setNoted({ ...noted, note: event.target.value })} />
          </p>
          ${told && html`<p class="complaint">${told}</p>`}
          <p class="choice">
            <button type="submit" id="write-note">Write it down</button>
            <button type="button" onClick=${() => dialog.current.close()}>Leave it</button>
          </p>
        </form>
      </dialog>
    </section>
  `;
}

function Line({ incident, nowMs, onNote }) {
  const { code, level, text, detail, since_ms: sinceMs, until_ms: untilMs, times, note } = incident;
  const verb = note ? "Change note" : "Note";
  return html`
    <tr data-incident=${code} data-lasts=${untilMs === null}>
      <th scope="row" title=${detail ?? undefined}>
        ${text}${times > 1 && html` <span class="soft">(${plural(times, "time")})</span>`}
      </th>
      <td><${Level} level=${level} word=${WORDS[level]} /></td>
      <td class="number">${clock(sinceMs, nowMs)}</td>
      <td class="number">${untilMs === null ? "lasts" : clock(untilMs, nowMs)}</td>
      <td class="number">${duration((untilMs ?? nowMs) - sinceMs)}</td>
      <td class="done">
        ${note}${" "}
        <button type="button" class="small" aria-label=${`${verb} on ${text}, ${clock(sinceMs, nowMs)}`} onClick=${onNote}>
          ${verb}
        </button>
      </td>
    </tr>
  `;
}

// Returns why it was not written, nothing if it was.
async function written({ id, note }) {
  const path = `/v1/incidents/${encodeURIComponent(id)}/note?text=${encodeURIComponent(note.trim())}`;
  try {
    const answer = await ask(path, { method: "PUT" });
    return answer.isOk ? "" : complaint(answer);
  } catch (error) {
    if (error instanceof NoAnswer) return "The gateway does not answer.";
    throw error;
  }
}
