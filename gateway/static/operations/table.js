// A table with its caption, in a box that scrolls sideways where it is too wide.

import { html } from "./html.js";

// `heads` are [text, class]; what is inside are rows of the body.
export function Table({ caption, heads, children, foot }) {
  return html`
    <div class="scroll" role="region" aria-label=${caption} tabindex="0">
      <table>
        <caption class="visually-hidden">${caption}</caption>
        <thead>
          <tr>
            ${heads.map(([text, name]) => html`<th scope="col" class=${name}>${text}</th>`)}
          </tr>
        </thead>
        <tbody>${children}</tbody>
        ${foot && html`<tfoot>${foot}</tfoot>`}
      </table>
    </div>
  `;
}
