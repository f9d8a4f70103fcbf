// A table with its caption, in a box that scrolls sideways where it is too wide.

import { html } from "../board/html.js";
import { say } from "../language.js";

// `heads` are [text, class], the text a phrase or null for a column of buttons; what is
// inside are rows of the body.
export function Table({ caption, heads, children, foot }) {
  return html`
    <div class="scroll" role="region" aria-label=${caption} tabindex="0">
      <table>
        <caption class="visually-hidden">${caption}</caption>
        <thead>
          <tr>
            ${heads.map(([text, name]) =>
              text === null
                ? html`<th scope="col"><span class="visually-hidden">${say("client::Close")}</span></th>`
                : html`<th scope="col" class=${name}>${say(text)}</th>`,
            )}
          </tr>
        </thead>
        <tbody>${children}</tbody>
        ${foot && html`<tfoot>${foot}</tfoot>`}
      </table>
    </div>
  `;
}
