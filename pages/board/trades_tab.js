// Time and sales: the newest trades of an instrument, as they come.

import { useEffect } from "preact/hooks";

import { say } from "../language.js";
import { FigureTable } from "./figure_table.js";
import { clockText, countText, priceText, zoneText } from "./format.js";
import { html } from "./html.js";

// Properties: feed (trade_feed.js), name.
export function TradesTab({ feed, name }) {
  useEffect(() => {
    feed.start();
    return () => feed.stop();
  }, [feed]);
  const { entries, missed } = feed;
  return html`
    ${entries.length === 0 && html`<p class="soft note">${say("No trade has come since this was opened.")}</p>`}
    ${missed !== 0 && html`<p class="soft note">${missed === null ? say("Some trades are missing.") : say("{count} trades are missing.", { count: countText(missed) })}</p>`}
    ${entries.length > 0 &&
    html`
      <${FigureTable}
        kind="trades"
        caption=${say("Newest trades of {name}, newest first", { name })}
        first=${html`${say("Time")} <span class="zone">${zoneText()}</span>`}
        numbers=${[say("Price"), say("Size")]}
        last=${say("Venue")}
      >
        ${entries.map((entry) => html`<${Entry} key=${entry.number} entry=${entry} />`)}
      <//>
    `}
  `;
}

function Entry({ entry: { time, price, size, venue, cancels } }) {
  if (cancels !== undefined) {
    return html`<tr><td>${clockText(time / 1000)}</td><td colspan="3" class="soft">${say("trade {number} was taken back", { number: String(cancels) })}</td></tr>`;
  }
  return html`
    <tr>
      <td>${clockText(time / 1000)}</td>
      <td class="number">${priceText(price)}</td>
      <td class="number">${priceText(size)}</td>
      <td class="soft">${venue ?? ""}</td>
    </tr>
  `;
}
