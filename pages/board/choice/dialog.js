// A dialog over the page: the browser's own, which holds the focus and closes by Escape.

import { useEffect, useRef } from "preact/hooks";

import { say } from "../../language.js";
import { html } from "../html.js";

// Properties: id, title, onClose(), children. It is open for as long as it is drawn.
export function Dialog({ id, title, onClose, children }) {
  const dialog = useRef();
  useEffect(() => {
    const before = document.activeElement;
    dialog.current.showModal();
    return () => before?.focus({ preventScroll: true });
  }, []);
  const pressed = (event) => event.target === dialog.current && onClose();
  return html`
    <dialog id=${id} class="panel" aria-labelledby=${`${id}-title`} ref=${dialog} onClose=${onClose} onClick=${pressed}>
      <div class="content">
        <header>
          <h2 id=${`${id}-title`}>${title}</h2>
          <button type="button" class="quiet icon" aria-label=${say("button::Close")} onClick=${onClose}>✕</button>
        </header>
        ${children}
      </div>
    </dialog>
  `;
}
