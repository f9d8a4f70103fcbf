// Settings in force, the changed ones first, and the version.

import { token } from "./api.js";
import { html } from "./html.js";
import { Table } from "./table.js";

const HEADS = [
  ["Setting", ""],
  ["In force", ""],
  ["Default", ""],
];

export function Settings({ known: { settings, pipeline, complaints } }) {
  const data = settings?.data ?? [];
  const changed = data.filter((one) => !one.is_default);
  const ordered = [...changed, ...data.filter((one) => one.is_default)];
  return html`
    <section class="panel settings" aria-labelledby="settings-title">
      <h2 id="settings-title">Settings</h2>
      ${complaints.settings && html`<p class="complaint">${complaints.settings}</p>`}
      <details>
        <summary>${data.length} in force, ${changed.length} of them not as by default</summary>
        <${Table} caption="Settings in force, the changed ones first" heads=${HEADS}>
          ${ordered.map(
            (one) => html`<tr key=${one.name} data-changed=${!one.is_default}>
              <th scope="row" class="code">${one.name}</th>
              <td class="code">${one.is_default ? text(one.value) : html`<b>${text(one.value)}</b> <span class="mark">changed</span>`}</td>
              <td class="code soft">${text(one.default)}</td>
            </tr>`,
          )}
        <//>
      </details>
    </section>
    <footer class="soft">
      <span>tickthrottle ${pipeline.version}</span>
      <span>Times are those of this browser (${Intl.DateTimeFormat().resolvedOptions().timeZone}).</span>
      ${token.get() !== null && html`<button type="button" class="quiet" onClick=${forget}>Forget the token</button>`}
    </footer>
  `;
}

function forget() {
  token.forget();
  location.reload();
}

function text(value) {
  if (value === null || value === undefined || value === "") return "–";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
