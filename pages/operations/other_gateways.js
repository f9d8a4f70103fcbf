// Clients of the other gateways, as this one was told when it asked them.

import { html } from "../board/html.js";
import { say } from "../language.js";
import { ClientTable, STATES } from "./client_table.js";
import { told } from "./gateway_words.js";

// Nothing is shown where no other gateway is named.
export function OtherGateways({ known: { others, complaints, pipeline, wantedState } }) {
  if (!others?.data.length) return null;
  const answered = others.data.filter(({ problem }) => problem === null);
  const silent = others.data.filter(({ problem }) => problem !== null);
  return html`
    <section class="panel others" aria-labelledby="others-title">
      <h2 id="others-title">${say("Clients of other gateways")}</h2>
      <p class="soft note">
        ${say("the slowest of each, 20 at most; a client is closed at its own gateway's page")}
      </p>
      ${complaints.others && html`<p class="complaint">${complaints.others}</p>`}
      ${silent.length > 0 && html`<p class="complaint" id="silent-gateways">${silence(silent)}</p>`}
      ${answered.map(
        (other) => html`<${Other} key=${other.gateway} other=${other} wantedState=${wantedState} nowMs=${pipeline.now_ms} />`,
      )}
    </section>
  `;
}

// Which could not be asked, and why, in one sentence.
function silence(silent) {
  const gateways = silent.map(({ gateway, problem }) => `${gateway} (${told(problem)})`).join(", ");
  return say("{count} gateway could not be asked: {gateways}.|{count} gateways could not be asked: {gateways}.", {
    count: silent.length,
    gateways,
  });
}

function Other({ other: { gateway, count, states, data }, wantedState, nowMs }) {
  const counted = Object.entries(STATES)
    .filter(([state]) => states[state] > 0)
    .map(([state, word]) => `${say(word)} ${states[state]}`);
  return html`
    <div class="greys" data-gateway=${gateway}>
      <h3>
        ${gateway} <span class="soft">${say("gateway::{count} client|{count} clients", { count })}${counted.length > 0 && `: ${counted.join(", ")}`}</span>
      </h3>
      ${data.length > 0
        ? html`<${ClientTable} caption=${say("Clients of {gateway}, the slowest first", { gateway })} clients=${data} nowMs=${nowMs} />`
        : wantedState && count > 0 && html`<p class="soft">${say("None is {state}.", { state: say(STATES[wantedState]) })}</p>`}
    </div>
  `;
}
