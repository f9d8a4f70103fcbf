// The cells of the table that say how an instrument's day goes.

import { phrase, say } from "../../language.js";
import { eyeText, placesNeeded, priceText, widthOf } from "../format.js";
import { html } from "../html.js";
import { shortText } from "./breadth.js";
import { placeIn, rangeOf } from "./range.js";
import { StatusMarks } from "./statuses.js";
import { sparkPath } from "./trace.js";

const LIMITS = {
  upper: { text: phrase("limit ▲"), kind: "up", title: phrase("at the day's upper limit") },
  lower: { text: phrase("limit ▼"), kind: "down", title: phrase("at the day's lower limit") },
};

// What stands in the way of trading an instrument; nothing, mostly.
export function Marks({ row }) {
  const limit = !row.statuses.some(({ status }) => status.startsWith("limit")) && LIMITS[row.limit];
  return html`
    <${StatusMarks} row=${row} />
    ${row.isHalted && html`<span class="mark halted" title=${say("not traded for now, says the instrument table")}>${say("halted")}</span>`}
    ${row.isCorrected && html`<span class="mark corrected" title=${say("a trade was taken back or corrected: this is the newest one that stands")}>${say("corrected")}</span>`}
    ${limit && html`<span class=${`mark ${limit.kind}`} title=${say(limit.title)}>${say(limit.text)}</span>`}
  `;
}

const OF_DAY = phrase("of its day, from {low} to {high}");
const SEEN = phrase("of the newest half hour and since this page opened, from {low} to {high}");

// Column -> what draws its cell.
export const DayCells = (row) => ({
  spark: () => html`
    <td role="gridcell" key="spark" class="spark">
      <svg viewBox="0 0 960 220" preserveAspectRatio="none" aria-hidden="true" class=${row.change.kind}>
        <path d=${sparkPath(row.trace)} />
      </svg>
    </td>
  `,
  range: () => html`<td role="gridcell" key="range" class="range"><${Range} row=${row} /></td>`,
  turnover: () => html`<td role="gridcell" key="turnover" class="turnover number" title=${exactly(row.turnover, row.turnoverText)}>${shortText(row.turnover)}</td>`,
  volume: () => html`<td role="gridcell" key="volume" class="volume number" title=${exactly(row.volume, row.volumeText)}>${shortText(row.volume)}</td>`,
});

const exactly = (sum, text) => (sum === null ? undefined : priceText(text));

// The lowest and highest price of a row as they are written, with every digit.
function bounds({ day, digits }, { low, high }) {
  const most = Math.max(digits, placesNeeded(day?.low), placesNeeded(day?.high));
  return [low, high].map((bound) => bound.toFixed(most));
}

// How wide what stands below a range is.
export function rangeWidth(row) {
  const range = rangeOf(row);
  if (!(range.high > range.low)) return 0;
  return bounds(row, range).reduce((sum, bound) => sum + widthOf(eyeText(bound)), 0);
}

// The day's where it is known, else what the page knows.
function Range({ row }) {
  const { day, price } = row;
  const range = rangeOf(row);
  const place = placeIn(range, price);
  if (place === null) return html`<span class="soft">–</span>`;
  const ends = bounds(row, range);
  const [low, high] = ends.map(priceText);
  const text = say(day === undefined ? SEEN : OF_DAY, { low, high });
  return html`
    <span class="visually-hidden">${text}</span>
    <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true" class=${row.change.kind}>
      <title>${text}</title>
      <rect class="rail" y="2" width="100" height="2" />
      <rect class="place" x=${(place * 96).toFixed(1)} width="4" height="6" />
    </svg>
    <span class="ends" aria-hidden="true" title=${text}>${ends.map((end) => html`<span>${eyeText(end)}</span>`)}</span>
  `;
}
