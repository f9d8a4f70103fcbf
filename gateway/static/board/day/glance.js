// The market at a glance: a tile for all issues and one for each market. A tile of a
// market is the filter for it as well.

import { countText } from "../format.js";
import { html } from "../html.js";
import { shortText } from "./breadth.js";

const MOST_TILES = 8;

// Properties: sums (breadth.js), markets (set of those that are filtered), onMarket(name
// or null), reference ("close", "first", "mixed").
export function Glance({ sums, markets, onMarket, reference }) {
  const tiles = sums.slice(0, MOST_TILES + 1);
  const [whole] = sums;
  if (!whole.issues) return null;
  return html`
    <div id="glance" role="group" aria-label="The market at a glance">
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

function Tile({ sum, isPressed, onPress, reference }) {
  const { market, issues, up, same, down, turnover } = sum;
  const against = { close: "their previous close", first: "the first price seen since this page opened" };
  const text =
    `${market ?? "All markets"}: of ${countText(issues)} issues that have traded, ${countText(up)} are above ` +
    `${against[reference] ?? "their previous close or the first price seen"}, ${countText(same)} at it, ` +
    `${countText(down)} below.` +
    (turnover === null ? "" : ` Turnover of the day so far: ${countText(Math.round(turnover))}, the sum over its issues.`);
  return html`
    <button type="button" class="tile panel greys" aria-pressed=${isPressed} title=${text} onClick=${onPress}>
      <span class="head">
        <span class="market">${market ?? "All"}</span>${" "}
        ${turnover !== null && html`<span class="sum">${shortText(turnover)}</span>`}
      </span>
      <span class="bar" aria-hidden="true">
        ${[["up", up], ["same", same], ["down", down]].map(
          ([kind, count]) => html`<i class=${kind} style=${{ flexGrow: count }}></i>`,
        )}
      </span>
      <span class="counts">
        <span class="up">▲ ${countText(up)}<span class="visually-hidden"> up, </span></span>
        <span class="soft">${countText(same)}<span class="visually-hidden"> unchanged, </span></span>
        <span class="down">▼ ${countText(down)}<span class="visually-hidden"> down</span></span>
      </span>
    </button>
  `;
}
