// Alerts as a list: what each waits for; it can be changed, armed again and deleted.

import { useState } from "preact/hooks";

import { say } from "../../language.js";
import { html } from "../html.js";
import { nameOf } from "../names.js";
import { AlertForm } from "./form.js";
import { stateText, waitsText } from "./words.js";

// Properties: alerts (of them all, the Alerts of watcher.js), shown (those of the list),
// store, withNames (whether to say of which instrument each is).
export function AlertList({ alerts, shown, store, withNames }) {
  const [edited, setEdited] = useState(null); // id
  if (!shown.length) return html`<p class="soft">${say("No alert is set.")}</p>`;
  return html`
    <ul class="alert-list">
      ${shown.map((alert) => {
        const name = nameOf(store.instruments.get(alert.isin), alert.isin);
        const text = `${name}: ${waitsText(alert)}`;
        return html`
          <li key=${alert.id} class=${alert.isDone ? "done" : ""}>
            <div class="line">
              <span class="what">
                ${withNames && html`<b lang="ko">${name}</b>`} ${waitsText(alert)}
                <span class="soft">${stateText(alert)}</span>
              </span>
              ${alert.isDone &&
              html`<button type="button" class="quiet" aria-label=${say("Again: {text}", { text })} onClick=${() => alerts.set(alert)}>${say("Again")}</button>`}
              <button type="button" class="quiet" aria-label=${say("Edit: {text}", { text })} aria-expanded=${edited === alert.id} onClick=${() => setEdited(edited === alert.id ? null : alert.id)}>${say("Edit")}</button>
              <button type="button" class="quiet" aria-label=${say("Delete: {text}", { text })} onClick=${() => alerts.remove(alert.id)}>${say("Delete")}</button>
            </div>
            ${edited === alert.id &&
            html`
              <${AlertForm}
                isin=${alert.isin}
                alert=${alert}
                hasClose=${hasClose(store, alert.isin)}
                onSet=${(changed) => alerts.set(changed)}
                onCancel=${() => setEdited(null)}
              />
            `}
          </li>
        `;
      })}
    </ul>
  `;
}

export const hasClose = (store, isin) => Number(store.instruments.get(isin)?.prev_close) > 0;
