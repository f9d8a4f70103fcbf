// Settings in force, the changed ones first, and the version.

import { html } from "../board/html.js";
import { phrase, say } from "../language.js";
import { zone } from "../times.js";
import { token } from "./api.js";
import { Table } from "./table.js";

const HEADS = [
  [phrase("Setting"), ""],
  [phrase("In force"), ""],
  [phrase("Default"), ""],
];

export function Settings({ known: { settings, pipeline, complaints } }) {
  const data = settings?.data ?? [];
  const changed = data.filter((one) => !one.is_default);
  const ordered = [...changed, ...data.filter((one) => one.is_default)];
  const summary = say("{all} in force, {changed} of them not as by default", { all: data.length, changed: changed.length });
  return html`
    <section class="panel settings" aria-labelledby="settings-title">
      <h2 id="settings-title">${say("Settings")}</h2>
      ${complaints.settings && html`<p class="complaint">${complaints.settings}</p>`}
      <details>
        <summary>${summary}</summary>
        <${Table} caption=${say("Settings in force, the changed ones first")} heads=${HEADS}>
          ${ordered.map(
            (one) => html`<tr key=${one.name} data-changed=${!one.is_default}>
              <th scope="row" class="code">${one.name}</th>
              <td class="code">${one.is_default ? text(one.value) : html`<b>${text(one.value)}</b> <span class="mark">${say("changed")}</span>`}</td>
              <td class="code soft">${text(one.default)}</td>
            </tr>`,
          )}
        <//>
      </details>
    </section>
    <footer class="soft">
      <span>${`tickthrottle ${pipeline.version}`}</span>
      <span>${zoneNote()}</span>
      ${token.get() !== null && html`<button type="button" class="quiet" onClick=${forget}>${say("Forget the token")}</button>`}
    </footer>
  `;
}

function zoneNote() {
  if (zone() === "kst") return say("Times are those of Korea (KST)");
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  return say("Times are those of this browser ({zone}).", { zone: timeZone });
}

function forget() {
  token.forget();
  location.reload();
}

function text(value) {
  if (value === null || value === undefined || value === "") return "–";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
