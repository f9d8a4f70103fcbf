// What the colours of the map stand for.

import { html } from "../html.js";
import { stepText } from "./palette.js";

// Properties: steps (palette.js).
export const MapScale = ({ steps }) => html`
  <span class="scale greys" aria-hidden="true">
    <span class="soft">−5 %</span>
    ${[...steps].map(([step, { back }]) => html`<i key=${step} title=${stepText(step)} style=${{ background: back }}></i>`)}
    <span class="soft">+5 %</span>
  </span>
`;
