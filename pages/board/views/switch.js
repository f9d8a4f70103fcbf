// Table, map or charts: which view of the market is shown.

import { phrase, say } from "../../language.js";
import { calm, html } from "../html.js";

const NAMES = { table: phrase("Table"), map: phrase("Map"), charts: phrase("Charts") };

// Properties: shown (its name), onView(name).
export const ViewSwitch = calm(({ shown, onView }) => html`
  <div id="views" role="group" aria-label=${say("View of the market")}>
    ${Object.entries(NAMES).map(
      ([name, label]) => html`
        <button key=${name} type="button" class="quiet" aria-pressed=${name === shown} onClick=${() => onView(name)}>
          ${say(label)}
        </button>
      `,
    )}
  </div>
`);
