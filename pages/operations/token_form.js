// Asks for the operators' token, when the gateway does.

import { useState } from "preact/hooks";

import { html } from "../board/html.js";
import { say } from "../language.js";
import { token } from "./api.js";

export function TokenForm({ onToken }) {
  const [text, setText] = useState("");
  const wasRefused = token.get() !== null;
  const submit = (event) => {
    event.preventDefault();
    token.put(text.trim());
    setText("");
    onToken();
  };
  return html`
    <form class="token panel" onSubmit=${submit}>
      <label for="token">${say("Operator's token")}</label>
      <input id="token" type="password" autocomplete="off" spellcheck="false" required
        value=${text} onInput=${(event) => setText(event.target.value)}
        aria-describedby="token-note" />
      <button type="submit">${say("Use it")}</button>
      <p id="token-note" class="soft">
        ${wasRefused && say("The gateway does not accept this token.")}${" "}${say("It is kept until this tab is closed.")}
      </p>
    </form>
  `;
}
