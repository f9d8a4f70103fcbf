// Tabs: one of several parts of a panel is there at a time.

import { say } from "../language.js";
import { html } from "./html.js";

const STEPS = { ArrowRight: 1, ArrowLeft: -1 };

// `tabs` has a label by name, in English (language.js). With the keyboard, arrows go from tab to tab.
export function Tabs({ label, tabs, chosen, panel, onChoose }) {
  const names = Object.keys(tabs);
  const onKey = (event) => {
    const step = STEPS[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = names[(names.indexOf(chosen) + step + names.length) % names.length];
    onChoose(next);
    document.getElementById(`tab-${next}`).focus();
  };
  return html`
    <div class="tabs" role="tablist" aria-label=${label} onKeyDown=${onKey}>
      ${names.map(
        (name) => html`
          <button
            key=${name}
            id=${`tab-${name}`}
            type="button"
            role="tab"
            class="quiet"
            aria-selected=${name === chosen}
            aria-controls=${panel}
            tabindex=${name === chosen ? 0 : -1}
            onClick=${() => onChoose(name)}
          >
            ${say(tabs[name])}
          </button>
        `,
      )}
    </div>
  `;
}
