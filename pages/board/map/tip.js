// What is told of a tile or a group of the map: beside it, and to a screen reader.

import { say } from "../../language.js";
import { shortText } from "../day/breadth.js";
import { countText, differenceText, eyeText, KIND_WORDS, priceText, ratioText, zonedText } from "../format.js";
import { html } from "../html.js";
import { aboutText, langOf, nameOf } from "../names.js";
import { groupName } from "./groups.js";

// What a tile says, in a sentence.
export function instrumentText(row) {
  if (row === undefined) return say("No trade of this stock has come.");
  const { isin, item, instrument, change, turnover } = row;
  const parts = [
    nameOf(instrument, isin),
    instrument?.code,
    priceText(item.price),
    change.ratio === null ? null : `${say(KIND_WORDS[change.kind])} ${ratioText(change).replace(/^[+−]/, "")}`,
    turnover === null ? null : say("turnover {sum}", { sum: shortText(turnover) }),
    instrument?.sector,
  ];
  return parts.filter(Boolean).join(", ");
}

// Properties: row of an instrument, or sum of a group (groups.js); hasSums; style.
export function MapTip({ row, sum, hasSums, style }) {
  if (sum) return html`<div class="tip panel" aria-hidden="true" style=${style}><${GroupTip} sum=${sum} hasSums=${hasSums} /></div>`;
  if (row === undefined) return null;
  const { isin, item, instrument, change, digits, turnover } = row;
  return html`
    <div class="tip panel" aria-hidden="true" style=${style}>
      <b class="title" lang=${langOf(instrument)}>${nameOf(instrument, isin)}</b>
      <span class="soft">${aboutText(instrument) || isin}</span>
      <span class="greys">
        <b class=${change.kind}>${eyeText(item.price, digits)}</b>${" "}
        <span class=${change.kind}>${differenceText(change, digits)} ${ratioText(change)}</span>
      </span>
      <span>
        <span class="soft">${hasSums ? say("Turnover") : say("Trades")}</span>${" "}
        ${hasSums ? shortText(turnover) : countText(row.trades)}
        <span class="soft"> ${say("at {time}", { time: zonedText(item.time / 1000) })}</span>
      </span>
    </div>
  `;
}

const GroupTip = ({ sum, hasSums }) => html`
  <b class="title" lang="ko">${groupName(sum.name)}</b>
  <span class="soft">${say("{count} stock: press to see it alone|{count} stocks: press to see them alone", { count: sum.instruments })}</span>
  <span class="greys">
    <span class="up">▲ ${countText(sum.up)}</span> ${countText(sum.same)} <span class="down">▼ ${countText(sum.down)}</span>
  </span>
  <span><span class="soft">${hasSums ? say("Turnover") : say("Trades")}</span> ${shortText(sum.size)}</span>
`;
