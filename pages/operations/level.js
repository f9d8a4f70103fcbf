// How good something is: a shape, a colour and a word, so that no one of them is needed.

import { html } from "../board/html.js";

const SHAPES = {
  ok: "M7 12.5l3.2 3.2L17 9",
  warn: "M12 7.5v5.5M12 16.4v.1",
  bad: "M8.5 8.5l7 7M15.5 8.5l-7 7",
  unknown: "M8.5 12h7",
};
const FRAMES = {
  ok: () => html`<circle cx="12" cy="12" r="10" />`,
  warn: () => html`<path d="M12 2.2 22.6 21H1.4z" stroke="currentColor" stroke-width="2" stroke-linejoin="round" />`,
  bad: () => html`<path d="M7.9 2h8.2L22 7.9v8.2L16.1 22H7.9L2 16.1V7.9z" />`,
  unknown: () => html`<circle cx="12" cy="12" r="10" />`,
};

export function LevelIcon({ level }) {
  return html`
    <svg class="level" data-level=${level} viewBox="0 0 24 24" aria-hidden="true">
      <g fill="currentColor">${FRAMES[level]?.()}</g>
      <path class="mark" d=${SHAPES[level]} fill="none" stroke-width="2.4" stroke-linecap="round" stroke-linejoin="round" />
    </svg>
  `;
}

// Icon and word together.
export function Level({ level, word }) {
  return html`<span class="worded" data-level=${level}><${LevelIcon} level=${level} />${word}</span>`;
}
