// The slowest clients, and a way to close one.

import { useRef, useState } from "preact/hooks";

import { html } from "../board/html.js";
import { say } from "../language.js";
import { ask, complaint } from "./api.js";
import { ClientTable, STATES } from "./client_table.js";
import { count } from "./words.js";

export function Clients({ known, watcher }) {
  const { clients, wantedState, pipeline, complaints } = known;
  const [asked, setAsked] = useState(null);
  const [told, setTold] = useState("");
  const dialog = useRef(null);
  const answer = useRef(null);
  const confirm = (client) => {
    setAsked(client);
    setTold("");
    dialog.current.showModal();
  };
  const close = async () => {
    dialog.current.close();
    setTold(await closed(asked.id));
    // Its button is about to go, and with it the place in the page.
    answer.current.focus();
    watcher.now();
  };
  const none = wantedState
    ? say("No client is {state}.", { state: say(STATES[wantedState]) })
    : say("No client is connected.");
  return html`
    <section class="panel" aria-labelledby="clients-title">
      <h2 id="clients-title">${say("Slow clients")}</h2>
      <p class="tools">
        <label for="client-state">${say("Show")}</label>
        <select id="client-state" value=${wantedState}
          onChange=${(event) => watcher.change({ wantedState: event.target.value })}>
          <option value="">${say("every state")} (${count(clients?.count)})</option>
          ${Object.entries(STATES).map(
            ([state, word]) => html`<option key=${state} value=${state}>${say(word)} (${count(clients?.states?.[state])})</option>`,
          )}
        </select>
        <span id="client-told" class="soft" ref=${answer} tabindex="-1">${told}</span>
      </p>
      ${complaints.clients && html`<p class="complaint">${complaints.clients}</p>`}
      <div class="clients greys">
        ${clients?.data.length
          ? html`<${ClientTable} caption=${say("Clients, the slowest first")} clients=${clients.data}
              nowMs=${pipeline.now_ms} onClose=${confirm} />`
          : html`<p class="empty soft">${none}</p>`}
      </div>
      <dialog ref=${dialog} aria-labelledby="close-title">
        <h3 id="close-title">${say("Close {client}?", { client: asked?.id ?? "" })}</h3>
        <p>
          ${say(
            "Its connection from {address} is ended. A client that keeps to the protocol comes back after half a minute, and is sent what it has missed.",
            { address: asked?.address ?? "" },
          )}
        </p>
        <p class="choice">
          <button type="button" class="danger" id="close-it" onClick=${close}>${say("Close it")}</button>
          <button type="button" onClick=${() => dialog.current.close()}>${say("Leave it")}</button>
        </p>
      </dialog>
    </section>
  `;
}

async function closed(client) {
  const answer = await ask(`v1/clients/${encodeURIComponent(client)}`, { method: "DELETE" });
  if (answer.isOk) return say("{client} was closed.", { client });
  return answer.status === 404 ? say("{client} had left already.", { client }) : `${client}: ${complaint(answer)}`;
}
