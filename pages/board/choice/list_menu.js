// The watch-lists: choose one, begin one, delete one; take instruments out as text and in.

import { useState } from "preact/hooks";

import { say } from "../../language.js";
import { html } from "../html.js";
import { Dialog } from "./dialog.js";
import { activeList, exportText, importText, listName, nameProblem, withList, withoutActive } from "./lists.js";

// Properties: lists (lists.js), instruments (ISIN -> instrument), isinOf(text), onLists(lists),
// onClose().
export function ListMenu({ lists, instruments, isinOf, onLists, onClose }) {
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
    change(withList(lists, name.trim(), new Set()), say("“{name}” has been made.", { name: name.trim() }));
    setName("");
  };
  const take = () => {
    const { isins: taken, unknown, left } = importText(text ?? "", isinOf);
    const words = unknown.slice(0, 3).join(", ") + (unknown.length > 3 ? ", …" : "");
    const texts = [
      say("The list has {count} stock now.|The list has {count} stocks now.", { count: taken.size }),
      unknown.length ? say("Not known: {words}.", { words }) : "",
      left ? say("{count} more had no room.", { count: left }) : "",
    ];
    change(withList(lists, lists.active, taken), texts.filter(Boolean).join(" "));
  };
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(exportText(isins, instruments));
      setAnswer(say("Copied."));
    } catch {
      // A browser may refuse, and does without TLS; the text can be marked by hand.
      setAnswer(say("The browser does not let it be copied: mark the text by hand."));
    }
  };
  return html`
    <${Dialog} id="list-menu" title=${say("Watch-lists")} onClose=${onClose}>
      <div class="line">
        <label class="grows">
          ${say("List")}
          <select id="list" value=${lists.active} onChange=${(event) => change({ ...lists, active: event.target.value }, "")}>
            ${[...lists.lists].map(([each, { size }]) => html`<option key=${each} value=${each}>${listName(each)} (${size})</option>`)}
          </select>
        </label>
        <button type="button" onClick=${() => change(withoutActive(lists), say("“{name}” is gone.", { name: listName(lists.active) }))}>${say("Delete")}</button>
      </div>
      <form class="line" onSubmit=${begin}>
        <label class="grows">
          ${say("New list")}
          <input id="list-name" type="text" maxlength="40" autocomplete="off" value=${name} onInput=${(event) => setName(event.target.value)} />
        </label>
        <button type="submit">${say("Create")}</button>
      </form>
      <label>
        ${say("Stocks, by ISIN or code")}
        <textarea
          id="list-text"
          rows="7"
          spellcheck=${false}
          value=${text ?? exportText(isins, instruments)}
          onInput=${(event) => setText(event.target.value)}
        ></textarea>
      </label>
      <footer>
        <button type="button" disabled=${text === null} onClick=${take}>${say("Apply")}</button>
        <button type="button" onClick=${copy}>${say("Copy")}</button>
        <span role="status">${answer}</span>
      </footer>
    <//>
  `;
}
