// Dead letters: refused trades, why, and what they were.

import { html } from "../board/html.js";
import { parts, say } from "../language.js";
import { clock, count } from "./words.js";

export function Letters({ known, watcher }) {
  const { letters, wantedReason, pipeline, complaints } = known;
  const reasons = Object.entries(letters?.reasons ?? {}).sort((a, b) => b[1] - a[1]);
  const total = reasons.reduce((sum, [, number]) => sum + number, 0);
  const names = reasons.map(([reason]) => reason);
  return html`
    <section class="panel" aria-labelledby="letters-title">
      <h2 id="letters-title">${say("Dead letters")}</h2>
      <p class="tools">
        <label for="letter-reason">${say("Show")}</label>
        <select id="letter-reason" value=${wantedReason}
          onChange=${(event) => watcher.change({ wantedReason: event.target.value })}>
          <option value="">${say("every reason")} (${count(letters ? total : null)})</option>
          ${reasons.map(([reason, number]) => html`<option key=${reason} value=${reason}>${reason} (${count(number)})</option>`)}
          ${wantedReason && !names.includes(wantedReason) && html`<option value=${wantedReason}>${wantedReason} (0)</option>`}
        </select>
      </p>
      ${complaints.letters && html`<p class="complaint">${complaints.letters}</p>`}
      <div class="greys">
        ${letters?.data.length
          ? html`<ol class="letters" tabindex="0" aria-label=${say("Dead letters, the newest first")}>
              ${letters.data.map((letter) => html`<${Letter} key=${`${letter.job} ${letter.partition} ${letter.position}`} letter=${letter} nowMs=${pipeline.now_ms} />`)}
            </ol>`
          : html`<p class="empty soft">${letters ? say("No trade was refused.") : say("Not known yet.")}</p>`}
      </div>
    </section>
  `;
}

function Letter({ letter, nowMs }) {
  const digest = html`<span class="code">${letter.sha256}</span>`;
  return html`
    <li>
      <p>
        <b>${letter.reason}</b> <span lang="en">${letter.error}</span>
        <span class="soft where">${clock(letter.appended_ms, nowMs)}, ${letter.job}, <span class="code">${letter.partition}:${letter.position}</span></span>
      </p>
      <pre>${letter.trade}</pre>
      ${letter.sha256 && html`<p class="soft">${parts("The beginning of {size} bytes, SHA-256 {digest}", { size: letter.bytes, digest })}</p>`}
    </li>
  `;
}
