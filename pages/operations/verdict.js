// The verdict: the only part of the page that is read aloud when it changes.

import { useEffect, useState } from "preact/hooks";

import { html } from "../board/html.js";
import { parts, phrase, say } from "../language.js";
import { told } from "./gateway_words.js";
import { LevelIcon } from "./level.js";
import { report } from "./report.js";
import { clock, duration } from "./words.js";

const PAGE = "docs/operators.md";
const SITE_PAGE = "/operators.html#what-can-be-wrong";
const COPY = phrase("Copy as text");

// On a phone a further finding is a line, which unfolds.
const HAS_ROOM = matchMedia("(min-width: 40rem)").matches;

export function Verdict({ known }) {
  const { level, text, sinceMs, isExact, findings } = known.verdict ?? {
    level: "unknown",
    text: phrase("Asking the gateway"),
    sinceMs: null,
    findings: [],
  };
  const [first, ...others] = findings;
  const nowMs = Date.now() + known.skewMs;
  const docs = known.pipeline?.docs_url;
  return html`
    <section class="verdict panel" data-level=${level} aria-label=${say("Verdict")}>
      <${LevelIcon} level=${level} />
      <div class="says">
        <h2>
          <span id="verdict" role="status">${since(text, sinceMs, nowMs, isExact)}</span>${" "}
          ${sinceMs !== null && html`<${Age} sinceMs=${sinceMs - known.skewMs} />`}
        </h2>
        ${first && html`<${Advice} finding=${first} docs=${docs} />`}
        ${others.length > 0 &&
        html`<ul class="also">
          ${others.map(
            (one) => html`
              <li key=${one.code + (one.job ?? "")} data-level=${one.level}>
                <details open=${HAS_ROOM}>
                  <summary class="what"><${LevelIcon} level=${one.level} /> ${since(one.text, one.since_ms, nowMs)}</summary>
                  <${Advice} finding=${one} docs=${docs} />
                </details>
              </li>
            `,
          )}
        </ul>`}
      </div>
      ${known.pipeline && known.verdict && html`<${Copy} known=${known} />`}
    </section>
  `;
}

function since(text, sinceMs, nowMs, isExact = true) {
  const what = told(text);
  if (sinceMs === null) return what;
  const time = clock(sinceMs, nowMs);
  return isExact ? say("{what} since {time}", { what, time }) : say("{what} since {time} or earlier", { what, time });
}

// All that matters of this page, for a message to somebody.
function Copy({ known }) {
  const [label, setLabel] = useState(COPY);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(report(known));
      setLabel(phrase("Copied"));
    } catch {
      setLabel(phrase("The browser does not let this page copy"));
    }
    setTimeout(() => setLabel(COPY), 3_000);
  };
  return html`<button type="button" id="copy-report" class="small" onClick=${copy}>${say(label)}</button>`;
}

// A link where the documents are served; without that a path in a checkout.
function Advice({ finding: { detail, todo, code }, docs }) {
  const page = docs ? html`<a href=${docs + SITE_PAGE} target="_blank" rel="noreferrer">${PAGE}</a>` : PAGE;
  const where = html`${page}, <code>${code}</code>`;
  return html`
    ${detail && html`<p class="detail">${sentence(told(detail))}</p>`}
    <p class="todo"><b>${say("What to do:")}</b> ${told(todo)} <span class="soft">${parts("More: {where}", { where })}</span></p>
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
