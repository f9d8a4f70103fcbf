// The same as the map, as a table: the groups, or the instruments of one, the largest first.
// Its rows are made while it is open only, and there are 100 at most.

import { say } from "../../language.js";
import { shortText } from "../day/breadth.js";
import { FigureTable } from "../figure_table.js";
import { countText, eyeText, priceText } from "../format.js";
import { Fold } from "../fold.js";
import { html } from "../html.js";
import { langOf, nameOf } from "../names.js";
import { Change } from "../table.js";
import { groupName, sizeOf, summary } from "./groups.js";

const MOST = 100;

// Properties: groups(), name -> rows, null where instruments are shown; rows(); hasSums;
// onGroup(name), onSelect(isin).
export function MapTable({ groups, rows, hasSums, onGroup, onSelect }) {
  const content = () =>
    groups === null
      ? html`<${Instruments} rows=${rows()} hasSums=${hasSums} onSelect=${onSelect} />`
      : html`<${Groups} groups=${groups()} hasSums=${hasSums} onGroup=${onGroup} />`;
  return html`<${Fold} title=${say("The same as a table")} content=${content} />`;
}

const sizeName = (hasSums) => (hasSums ? say("Turnover") : say("Trades"));
const rest = (count) => count > MOST && html`<p class="soft">${say("and {count} smaller ones", { count: count - MOST })}</p>`;

function Groups({ groups, hasSums, onGroup }) {
  const sums = [...groups].map(([name, rows]) => summary(name, rows, hasSums)).sort((a, b) => b.size - a.size);
  return html`
    <div class="scrolls" tabindex="0" role="region" aria-label=${say("Groups as a table")}>
      <${FigureTable}
        kind="greys"
        caption=${say("Groups of the map, the largest first")}
        first=${say("Group")}
        numbers=${[say("Stocks"), say("Up"), say("Unchanged"), say("Down"), sizeName(hasSums)]}
      >
        ${sums.slice(0, MOST).map(
          ({ name, instruments, up, same, down, size }) => html`
            <tr key=${name}>
              <th scope="row"><button type="button" class="quiet" lang="ko" onClick=${() => onGroup(name)}>${groupName(name)}</button></th>
              <td class="number">${countText(instruments)}</td>
              <td class="number up">${countText(up)}</td>
              <td class="number">${countText(same)}</td>
              <td class="number down">${countText(down)}</td>
              <td class="number">${shortText(size)}</td>
            </tr>
          `,
        )}
      <//>
      ${rest(sums.length)}
    </div>
  `;
}

function Instruments({ rows, hasSums, onSelect }) {
  const size = (row) => sizeOf(row, hasSums);
  const largest = [...rows].sort((a, b) => size(b) - size(a)).slice(0, MOST);
  return html`
    <div class="scrolls" tabindex="0" role="region" aria-label=${say("Stocks as a table")}>
      <${FigureTable}
        kind="greys"
        caption=${say("Stocks of the map, the largest first")}
        first=${say("Stock")}
        numbers=${[say("Price"), say("Change"), sizeName(hasSums)]}
      >
        ${largest.map(
          (row) => html`
            <tr key=${row.isin}>
              <th scope="row">
                <button type="button" class="quiet" lang=${langOf(row.instrument)} onClick=${() => onSelect(row.isin)}>${nameOf(row.instrument, row.isin)}</button>
              </th>
              <td class=${`number ${row.change.kind}`} title=${priceText(row.item.price)}>${eyeText(row.item.price, row.digits)}</td>
              <td class=${`number ${row.change.kind}`}><${Change} row=${row} /></td>
              <td class="number">${shortText(size(row))}</td>
            </tr>
          `,
        )}
      <//>
      ${rest(rows.length)}
    </div>
  `;
}
