// A small table of figures, with a caption for the ear.

import { html } from "./html.js";

// Properties: kind (a class), caption, first (what the first column's words are), numbers (heads of
// the columns of numbers), last (of a further column of words, if there is one). Inside are rows.
export const FigureTable = ({ kind, caption, first, numbers, last, children }) => html`
  <table class=${kind}>
    <caption class="visually-hidden">${caption}</caption>
    <thead>
      <tr>
        <th scope="col">${first}</th>
        ${numbers.map((head) => html`<th key=${head} scope="col" class="number">${head}</th>`)}
        ${last && html`<th scope="col">${last}</th>`}
      </tr>
    </thead>
    <tbody>${children}</tbody>
  </table>
`;
