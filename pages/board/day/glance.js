// The market at a glance: a tile for all instruments and one for each market. A tile of a
// market is the filter for it as well.

import { phrase, say } from "../../language.js";
import { countText, ratioText } from "../format.js";
import { html } from "../html.js";
import { levelChange, levelText } from "./board_index.js";
import { shortText } from "./breadth.js";

const MOST_TILES = 8;

// Properties: sums (breadth.js), markets (set of those that are filtered), onMarket(name
// or null), reference ("close", "first", "mixed").
export function Glance({ sums, markets, onMarket, reference }) {
  const tiles = sums.slice(0, MOST_TILES + 1);
  const [whole] = sums;
  if (!whole.instruments) return null;
  return html`
    <div id="glance" role="group" aria-label=${say("The market at a glance")}>
      ${tiles.map(
        (sum) => html`
          <${Tile}
            key=${sum.market ?? ""}
            sum=${sum}
            isPressed=${sum.market === null ? !markets.size : markets.has(sum.market)}
            onPress=${() => onMarket(sum.market)}
            reference=${reference}
          />
        `,
      )}
    </div>
  `;
}

const AGAINST = {
  close: phrase(
    "{name}: of {instruments} stocks that have traded, {up} are above their previous close, {same} at it, {down} below.",
  ),
  first: phrase(
    "{name}: of {instruments} stocks that have traded, {up} are above the first price seen since this page opened, {same} at it, {down} below.",
  ),
  mixed: phrase(
    "{name}: of {instruments} stocks that have traded, {up} are above their previous close or the first price seen, {same} at it, {down} below.",
  ),
};
const TURNOVER = phrase("Turnover of the day so far: {sum}, the sum over its stocks.");
const INDEX = phrase("The board index is what all listed shares are worth, 1,000 being the previous close; no exchange tells it.");

function Tile({ sum, isPressed, onPress, reference }) {
  const { market, instruments, up, same, down, turnover, level } = sum;
  const name = market ?? say("All markets");
  const about = say(AGAINST[reference] ?? AGAINST.mixed, { name, instruments, up, same, down });
  const total = turnover === null ? "" : ` ${say(TURNOVER, { sum: countText(Math.round(turnover)) })}`;
  const index = level === null ? "" : ` ${say(INDEX)}`;
  return html`
    <button type="button" class="tile panel greys" aria-pressed=${isPressed} title=${about + total + index} onClick=${onPress}>
      <span class="head">
        <span class="market">${market ?? say("All")}</span>${" "}
        ${turnover !== null && html`<span class="sum">${shortText(turnover)}</span>`}
      </span>
      ${level !== null && html`<${Level} level=${level} />`}
      <span class="bar" aria-hidden="true">
        ${[["up", up], ["same", same], ["down", down]].map(
          ([kind, count]) => html`<i class=${kind} style=${{ flexGrow: count }}></i>`,
        )}
      </span>
      <span class="counts">
        <span class="up">▲ ${countText(up)}<span class="visually-hidden"> ${say("up")}, </span></span>
        <span class="soft">${countText(same)}<span class="visually-hidden"> ${say("unchanged")}, </span></span>
        <span class="down">▼ ${countText(down)}<span class="visually-hidden"> ${say("down")}</span></span>
      </span>
    </button>
  `;
}

function Level({ level }) {
  const change = levelChange(level);
  return html`
    <span class="level">
      <span class="soft">${say("Board index")}</span>${" "}
      <span class="figure">${levelText(level)}</span>${" "}
      <span class=${change.kind}>${ratioText(change)}</span>
    </span>
  `;
}
