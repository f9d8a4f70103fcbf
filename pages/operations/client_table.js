// Some clients of a gateway as a table, the slowest first.

import { html } from "../board/html.js";
import { phrase, say } from "../language.js";
import { Level } from "./level.js";
import { Table } from "./table.js";
import { ago, bytes, clock, count } from "./words.js";

const LEVELS = { live: "ok", new: "unknown", behind: "warn", stuck: "bad" };

// States of clients, in words.
export const STATES = {
  live: phrase("client::live"),
  behind: phrase("client::behind"),
  stuck: phrase("client::stuck"),
  new: phrase("client::new"),
};

const NUMBER = "number";
const HEADS = [
  [phrase("Client"), ""],
  [phrase("State"), ""],
  [phrase("Waiting keys"), NUMBER],
  [phrase("Unsent"), NUMBER],
  [phrase("Last sent"), NUMBER],
  [phrase("Keys"), NUMBER],
  [phrase("Address"), ""],
  [phrase("Since"), NUMBER],
];

// Each client has a button where there is an `onClose`, which is called with the client.
export function ClientTable({ caption, clients, nowMs, onClose }) {
  return html`
    <${Table} caption=${caption} heads=${onClose ? [...HEADS, [null]] : HEADS}>
      ${clients.map(
        (client) => html`<${Line} key=${client.id} client=${client} nowMs=${nowMs} onClose=${onClose} />`,
      )}
    <//>
  `;
}

function Line({ client, nowMs, onClose }) {
  return html`
    <tr data-client=${client.id}>
      <th scope="row" class="code">${client.id}</th>
      <td><${Level} level=${LEVELS[client.state] ?? "unknown"} word=${say(STATES[client.state] ?? client.state)} /></td>
      <td class="number">${count(client.pending)}</td>
      <td class="number">${bytes(client.unsent_bytes)}</td>
      <td class="number">${client.sent_ms ? ago(nowMs - client.sent_ms) : "–"}</td>
      <td class="number">${client.everything ? say("every key::all") : count(client.keys)}</td>
      <td>${client.address}${client.kind === "sse" && html` <span class="soft">${"SSE"}</span>`}</td>
      <td class="number">${clock(client.connected_ms, nowMs)}</td>
      ${onClose &&
      html`<td>
        <button type="button" class="danger small" aria-label=${say("Close {client}", { client: client.id })}
          onClick=${() => onClose(client)}>${say("client::Close")}</button>
      </td>`}
    </tr>
  `;
}
