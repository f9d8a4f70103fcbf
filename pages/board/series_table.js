// An instrument's venues and sessions, each with its price and what was traded of it today.

import { phrase, say } from "../language.js";
import { shortText } from "./day/breadth.js";
import { FigureTable } from "./figure_table.js";
import { changeOf, differenceText, KIND_WORDS, places, priceText, ratioText } from "./format.js";
import { html } from "./html.js";

const SESSIONS = {
  pre: phrase("pre-market"),
  regular: phrase("regular session"),
  after: phrase("after-market"),
  closed: phrase("closed day"),
};

// "KRX-regular" -> "KRX · regular session".
export function seriesText(name) {
  const [, venue, session] = /^([A-Z0-9_]*)-?([a-z]*)$/.exec(name) ?? [null, name, ""];
  return [venue, session && say(SESSIONS[session] ?? session)].filter(Boolean).join(" · ");
}

// In which session a trade was made, if that is not the regular one; else "".
export const sessionText = ({ session }) => (session in SESSIONS && session !== "regular" ? say(SESSIONS[session]) : "");

// `items` is a map of the newest items by the names of series.
export function SeriesTable({ items, prevClose }) {
  if (!items.size) return null;
  return html`
    <${FigureTable} kind="series" caption=${say("Venues and sessions")} first=${say("Venue or session")} numbers=${[say("Price"), say("Change"), say("Volume")]}>
      ${[...items].sort().map(([name, item]) => html`<${Line} key=${name} name=${name} item=${item} prevClose=${prevClose} />`)}
    <//>
  `;
}

function Line({ name, item, prevClose }) {
  const change = changeOf(item.price, prevClose);
  const digits = Math.max(places(item.price), places(prevClose ?? ""));
  const volume = item.day?.volume;
  return html`
    <tr>
      <th scope="row">${seriesText(name)}</th>
      <td class=${`number ${change.kind}`}>${priceText(item.price)}</td>
      <td class=${`number ${change.kind}`}>
        <span class="visually-hidden">${say(KIND_WORDS[change.kind])} </span>
        ${differenceText(change, digits)} ${ratioText(change)}
      </td>
      <td class="number" title=${volume === undefined ? undefined : priceText(volume)}>${shortText(volume === undefined ? null : Number(volume))}</td>
    </tr>
  `;
}
