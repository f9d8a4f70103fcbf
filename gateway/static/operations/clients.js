// The slowest clients, and a way to close one.

import { useRef, useState } from "preact/hooks";

import { NoAnswer, ask, complaint } from "./api.js";
import { html } from "./html.js";
import { Level } from "./level.js";
import { Table } from "./table.js";
import { bytes, clock, count, duration } from "./words.js";

const LEVELS = { live: "ok", new: "unknown", behind: "warn", stuck: "bad" };
const STATES = ["live", "behind", "stuck", "new"];
const HEADS = [
  ["Client", ""],
  ["State", ""],
  ["Waiting keys", "number"],
  ["Unsent", "number"],
  ["Last sent", "number"],
  ["Keys", "number"],
  ["Address", ""],
  ["Since", "number"],
  [html`<span class="visually-hidden">Close</span>`, ""],
];

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
  return html`
    <section class="panel" aria-labelledby="clients-title">
      <h2 id="clients-title">Slow clients</h2>
      <p class="tools">
        <label for="client-state">Show</label>
        <select id="client-state" value=${wantedState}
          onChange=${(event) => watcher.change({ wantedState: event.target.value })}>
          <option value="">every state (${count(clients?.count)})</option>
          ${STATES.map((state) => html`<option key=${state} value=${state}>${state} (${count(clients?.states?.[state])})</option>`)}
        </select>
        <span id="client-told" class="soft" ref=${answer} tabindex="-1">${told}</span>
      </p>
      ${complaints.clients && html`<p class="complaint">${complaints.clients}</p>`}
      <div class="clients greys">
        ${clients?.data.length
          ? html`<${Table} caption="Clients, the slowest first" heads=${HEADS}>
              ${clients.data.map(
                (client) => html`<${Line} key=${client.id} client=${client} nowMs=${pipeline.now_ms} onClose=${() => confirm(client)} />`,
              )}
            <//>`
          : html`<p class="empty soft">${wantedState ? `No client is ${wantedState}.` : "No client is connected."}</p>`}
      </div>
      <dialog ref=${dialog} aria-labelledby="close-title">
        <h3 id="close-title">Close ${asked?.id}?</h3>
        <p>
          Its connection from ${asked?.address} is ended. A client that keeps to the protocol comes back after half
          a minute, and is sent what it has missed.
        </p>
        <p class="choice">
          <button type="button" class="danger" id="close-it" onClick=${close}>Close it</button>
          <button type="button" onClick=${() => dialog.current.close()}>Leave it</button>
        </p>
      </dialog>
    </section>
  `;
}

async function closed(id) {
  try {
    const answer = await ask(`/v1/clients/${encodeURIComponent(id)}`, { method: "DELETE" });
    if (answer.isOk) return `${id} was closed.`;
    return answer.status === 404 ? `${id} had left already.` : `${id}: ${complaint(answer)}`;
  } catch (error) {
    if (error instanceof NoAnswer) return `${id}: the gateway does not answer.`;
    throw error;
  }
}

function Line({ client, nowMs, onClose }) {
  return html`
    <tr data-client=${client.id}>
      <th scope="row" class="code">${client.id}</th>
      <td><${Level} level=${LEVELS[client.state] ?? "unknown"} word=${client.state} /></td>
      <td class="number">${count(client.pending)}</td>
      <td class="number">${bytes(client.unsent_bytes)}</td>
      <td class="number">${client.sent_ms ? `${duration(nowMs - client.sent_ms)} ago` : "–"}</td>
      <td class="number">${client.everything ? "all" : count(client.keys)}</td>
      <td>${client.address}${client.kind === "sse" && html` <span class="soft">SSE</span>`}</td>
      <td class="number">${clock(client.connected_ms, nowMs)}</td>
      <td><button type="button" class="danger small" aria-label=${`Close ${client.id}`} onClick=${onClose}>Close</button></td>
    </tr>
  `;
}
