// Table, map or charts: which view of the market is shown.

import { html } from "../html.js";

const NAMES = { table: "Table", map: "Map", charts: "Charts" };

// Properties: shown (its name), onView(name).
export const ViewSwitch = ({ shown, onView }) => html`
  <div id="views" role="group" aria-label="View of the market">
    ${Object.entries(NAMES).map(
      ([name, label]) => html`
        <button key=${name} type="button" class="quiet" aria-pressed=${name === shown} onClick=${() => onView(name)}>
          ${label}
        </button>
      `,
    )}
  </div>
`;
