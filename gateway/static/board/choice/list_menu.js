// The watch-lists: choose one, begin one, delete one; take issues out as text and in.

import { useState } from "preact/hooks";

import { html } from "../html.js";
import { Dialog } from "./dialog.js";
import { activeList, exportText, importText, nameProblem, withList, withoutActive } from "./lists.js";

// Properties: lists (lists.js), issues (ISIN -> issue), isinOf(text), onLists(lists),
// onClose().
export function ListMenu({ lists, issues, isinOf, onLists, onClose }) {
  const [name, setName] = useState("");
  const [text, setText] = useState(null); // null: that of the list
  const [answer, setAnswer] = useState("");
  const isins = activeList(lists);
  const change = (changed, said) => {
    onLists(changed);
    setText(null);
    setAnswer(said);
  };
  const begin = (event) => {
    event.preventDefault();
    const problem = nameProblem(lists, name);
    if (problem !== null) return setAnswer(problem);
    change(withList(lists, name.trim(), new Set()), `“${name.trim()}” has been made.`);
    setName("");
  };
  const take = () => {
    const { isins: taken, unknown, left } = importText(text ?? "", isinOf);
    const also = unknown.length ? ` Not known: ${unknown.slice(0, 3).join(", ")}${unknown.length > 3 ? ", …" : ""}.` : "";
    const rest = left ? ` ${left} more had no room.` : "";
    change(withList(lists, lists.active, taken), `The list has ${taken.size} issues now.${also}${rest}`);
  };
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(exportText(isins, issues));
      setAnswer("Copied.");
    } catch {
      // A browser may refuse, and does without TLS; the text can be marked by hand.
      setAnswer("The browser does not let it be copied: mark the text by hand.");
    }
  };
  return html`
    <${Dialog} id="list-menu" title="Watch-lists" onClose=${onClose}>
      <div class="line">
        <label class="grows">
          List
          <select id="list" value=${lists.active} onChange=${(event) => change({ ...lists, active: event.target.value }, "")}>
            ${[...lists.lists].map(([each, { size }]) => html`<option key=${each} value=${each}>${each} (${size})</option>`)}
          </select>
        </label>
        <button type="button" onClick=${() => change(withoutActive(lists), `“${lists.active}” is gone.`)}>Delete</button>
      </div>
      <form class="line" onSubmit=${begin}>
        <label class="grows">
          New list
          <input id="list-name" type="text" maxlength="40" autocomplete="off" value=${name} onInput=${(event) => setName(event.target.value)} />
        </label>
        <button type="submit">Make</button>
      </form>
      <label>
        Issues, by ISIN or code
        <textarea
          id="list-text"
          rows="7"
          spellcheck=${false}
          value=${text ?? exportText(isins, issues)}
          onInput=${(event) => setText(event.target.value)}
        ></textarea>
      </label>
      <footer>
        <button type="button" disabled=${text === null} onClick=${take}>Take these issues</button>
        <button type="button" onClick=${copy}>Copy</button>
        <span role="status">${answer}</span>
      </footer>
    <//>
  `;
}
