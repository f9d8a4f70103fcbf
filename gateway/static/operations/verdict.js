// The verdict: the only part of the page that is read aloud when it changes.

import { useEffect, useState } from "preact/hooks";

import { html } from "./html.js";
import { LevelIcon } from "./level.js";
import { report } from "./report.js";
import { clock, duration } from "./words.js";

export function Verdict({ known }) {
  const { level, text, sinceMs, isExact, findings } = known.verdict ?? {
    level: "unknown",
    text: "Asking the gateway",
    sinceMs: null,
    findings: [],
  };
  const [first, ...others] = findings;
  const nowMs = Date.now() + known.skewMs;
  return html`
    <section class="verdict panel" data-level=${level} aria-label="Verdict">
      <${LevelIcon} level=${level} />
      <div class="says">
        <h2>
          <span id="verdict" role="status">
            ${text}${sinceMs !== null && ` since ${clock(sinceMs, nowMs)}`}${isExact === false && " or earlier"}
          </span>${" "}
          ${sinceMs !== null && html`<${Age} sinceMs=${sinceMs - known.skewMs} />`}
        </h2>
        ${first && html`<${Advice} finding=${first} />`}
        ${others.length > 0 &&
        html`<ul class="also">
          ${others.map(
            (one) => html`
              <li key=${one.code + (one.job ?? "")} data-level=${one.level}>
                <p class="what"><${LevelIcon} level=${one.level} /> ${one.text} since ${clock(one.since_ms, nowMs)}</p>
                <${Advice} finding=${one} />
              </li>
            `,
          )}
        </ul>`}
      </div>
      ${known.pipeline && known.verdict && html`<${Copy} known=${known} />`}
    </section>
  `;
}

// All that matters of this page, for a message to somebody.
function Copy({ known }) {
  const [told, setTold] = useState("Copy as text");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(report(known));
      setTold("Copied");
    } catch {
      setTold("The browser does not let this page copy");
    }
    setTimeout(() => setTold("Copy as text"), 3_000);
  };
  return html`<button type="button" id="copy-report" class="small" onClick=${copy}>${told}</button>`;
}

function Advice({ finding: { detail, todo, code } }) {
  return html`
    ${detail && html`<p class="detail">${sentence(detail)}</p>`}
    <p class="todo"><b>What to do:</b> ${todo} <span class="soft">More: docs/operators.md, <code>${code}</code></span></p>
  `;
}

const sentence = (text) =>
  `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;

// Ticks by itself, and beside what is read aloud. The time is by this clock.
function Age({ sinceMs }) {
  const [nowMs, setNowMs] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNowMs(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return html`<span class="age soft">${duration(Math.max(nowMs, Date.now()) - sinceMs)}</span>`;
}
