// Where a visitor meets alerts: in the panel of an instrument, in one list of them all, and as
// notices over the page.

import { useState } from "preact/hooks";

import { say } from "../../language.js";
import { Dialog } from "../choice/dialog.js";
import { zonedText } from "../format.js";
import { html } from "../html.js";
import { nameOf } from "../names.js";
import { AlertForm } from "./form.js";
import { AlertList, hasClose } from "./list.js";
import { areNotificationsOn, isSoundOn, setNotifications, setSound } from "./signals.js";
import { toldText } from "./words.js";

const MOST_SHOWN = 3;
const roomy = matchMedia("(min-width: 72rem) and (min-height: 48rem)");

// Properties: alerts (watcher.js), store, isin. Where there is room they are unfolded.
export function InstrumentAlerts({ alerts, store, isin }) {
  const shown = alerts.of(isin);
  const [isOpen] = useState(roomy.matches);
  return html`
    <details class="windows alerts" open=${isOpen}>
      <summary>${say("Alerts")} <span class="count">${shown.length || ""}</span></summary>
      <${AlertForm}
        key=${isin}
        isin=${isin}
        price=${store.rows.get(isin)?.item.price}
        hasClose=${hasClose(store, isin)}
        onSet=${(alert) => alerts.set(alert)}
      />
      <${AlertList} alerts=${alerts} shown=${shown} store=${store} withNames=${false} />
    </details>
  `;
}

// Properties: alerts, store, onClose().
export function AlertMenu({ alerts, store, onClose }) {
  const [answer, setAnswer] = useState("");
  const [, draw] = useState(0);
  const sound = (event) => {
    setSound(event.target.checked);
    draw((count) => count + 1);
  };
  const notify = async (event) => {
    setAnswer(await setNotifications(event.target.checked));
    draw((count) => count + 1);
  };
  return html`
    <${Dialog} id="alert-menu" title=${say("Alerts")} onClose=${onClose}>
      <${AlertList} alerts=${alerts} shown=${alerts.list} store=${store} withNames=${true} />
      <p class="soft">${say("An alert is set in the panel of a stock. It is kept in this browser, and told while this page is open.")}</p>
      <label><input type="checkbox" checked=${isSoundOn()} onChange=${sound} />${say("Sound")}</label>
      <label><input type="checkbox" checked=${areNotificationsOn()} onChange=${notify} />${say("Notifications")}</label>
      <p role="status">${answer}</p>
    <//>
  `;
}

// What has been told and not been dismissed; it is read out as it comes. Properties:
// alerts, store, onSelect(isin).
export function Notices({ alerts, store, onSelect }) {
  const { notices } = alerts;
  const more = notices.length - MOST_SHOWN;
  const open = ({ id, alert }) => {
    alerts.dismiss(id);
    onSelect(alert.isin);
  };
  return html`
    <div id="told" role="log" aria-live="polite" aria-label=${say("Alerts that were told")}>
      ${notices.slice(0, MOST_SHOWN).map(
        (notice) => html`
          <div key=${notice.id} class="panel notice">
            <button type="button" class="quiet text" onClick=${() => open(notice)}>
              ${toldText(notice.alert, nameOf(store.instruments.get(notice.alert.isin), notice.alert.isin))}${" "}
              <span class="soft">${zonedText(notice.alert.toldMs)}</span>
            </button>
            <button type="button" class="quiet icon" aria-label=${say("Dismiss")} onClick=${() => alerts.dismiss(notice.id)}>✕</button>
          </div>
        `,
      )}
      ${notices.length > 1 &&
      html`
        <button key="all" type="button" class="dismiss" onClick=${() => alerts.dismissAll()}>
          ${more > 0 ? say("Dismiss all, {count} more", { count: more }) : say("Dismiss all")}
        </button>
      `}
    </div>
  `;
}
