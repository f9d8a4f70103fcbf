// Which columns, in which order, and how close the rows are.

import { say } from "../../language.js";
import { choiceText, isOptional, labelOf, moved, parseChoice } from "../columns.js";
import { html } from "../html.js";
import { toggled } from "../watchlist.js";
import { Dialog } from "./dialog.js";

// Properties: choice (columns.js), layout (the one it leads to), hasSums, onChoice(choice),
// onClose().
export function ColumnMenu({ choice, layout, hasSums, onChoice, onClose }) {
  const { order, hidden, isDense } = choice;
  const shown = new Set(layout.columns.map(({ id }) => id));
  const note = (id) => {
    if (shown.has(id) || hidden.has(id)) return "";
    if (!hasSums && (id === "turnover" || id === "volume")) return say("trades do not say it");
    return say("no room now");
  };
  return html`
    <${Dialog} id="column-menu" title=${say("Columns")} onClose=${onClose}>
      <ul class="columns">
        ${order.map(
          (id, place) => html`
            <li key=${id}>
              <label>
                <input
                  type="checkbox"
                  checked=${!hidden.has(id)}
                  disabled=${!isOptional(id)}
                  onChange=${() => onChoice({ ...choice, hidden: toggled(hidden, id) })}
                />
                ${say(labelOf(id))} <span class="soft">${note(id)}</span>
              </label>
              <button
                type="button"
                class="quiet icon"
                aria-label=${say("Move {name} left", { name: say(labelOf(id)) })}
                disabled=${place === 0}
                onClick=${() => onChoice({ ...choice, order: moved(order, id, -1) })}
              >
                ↑
              </button>
              <button
                type="button"
                class="quiet icon"
                aria-label=${say("Move {name} right", { name: say(labelOf(id)) })}
                disabled=${place === order.length - 1}
                onClick=${() => onChoice({ ...choice, order: moved(order, id, 1) })}
              >
                ↓
              </button>
            </li>
          `,
        )}
      </ul>
      <label>
        <input type="checkbox" checked=${isDense} onChange=${() => onChoice({ ...choice, isDense: !isDense })} />
        ${say("Compact rows")}
      </label>
      <footer>
        <button type="button" disabled=${choiceText(choice) === choiceText(parseChoice(null))} onClick=${() => onChoice(parseChoice(null))}>
          ${say("Reset")}
        </button>
      </footer>
    <//>
  `;
}
