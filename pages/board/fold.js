// A part of a page that is shown on request. What is in it is made only while it is open.

import { useState } from "preact/hooks";

import { html } from "./html.js";

// Properties: title, content() (what is in it).
export function Fold({ title, content }) {
  const [isOpen, setIsOpen] = useState(false);
  return html`
    <details class="windows" onToggle=${(event) => setIsOpen(event.target.open)}>
      <summary>${title}</summary>
      ${isOpen && content()}
    </details>
  `;
}
