// The panel of the instrument a visitor has selected.

import { useEffect, useRef, useState } from "preact/hooks";

import { phrase, say } from "../language.js";
import { withInstrument } from "./address.js";
import { InstrumentAlerts } from "./alerts/panels.js";
import { barOfDay } from "./candles/bars.js";
import { Day, InstrumentChart } from "./candles/instrument_chart.js";
import { Compare } from "./compare.js";
import { StatusLines } from "./day/statuses.js";
import { FigureTable } from "./figure_table.js";
import { Fold } from "./fold.js";
import { clockText, countText, priceText, zonedText, zoneText } from "./format.js";
import { html } from "./html.js";
import { aboutText, langOf, nameOf } from "./names.js";
import { sessionText, SeriesTable } from "./series_table.js";
import { Change, Price } from "./table.js";
import { Tabs } from "./tabs.js";
import { TradesTab } from "./trades_tab.js";

const TABS = { chart: phrase("Chart"), polling: phrase("Polling"), trades: phrase("Trades") };

const TABLE_ROWS = 20;

// Properties: selection, row, alerts, store, clock, heardMs, isLive, isWatched, onStar(isin), onClose(),
// onChart(interval or null), isStanding: nobody has opened it, nor can close it.
export function Detail({ selection, row, alerts, store, isWatched, isStanding, onStar, onClose, onChart, ...line }) {
  const heading = useRef();
  const { isin, windows, history, feed } = selection;
  const instrument = row?.instrument;
  const name = nameOf(instrument, isin);
  const [tab, setTab] = useState("chart");
  useEffect(() => {
    // A switch in the header has everything drawn anew, and keeps the focus.
    if (!isStanding && !document.activeElement.closest("#shell")) heading.current.focus({ preventScroll: true });
  }, []);
  // Nothing is asked for again and again that nobody looks at.
  useEffect(() => {
    if (tab !== "polling") return undefined;
    selection.startPolling();
    return () => selection.stopPolling();
  }, [tab, selection]);
  return html`
    <section class="detail panel" aria-labelledby="detail-title">
      <header>
        <div>
          <h2 id="detail-title" lang=${langOf(instrument)} tabindex="-1" aria-live="polite" ref=${heading}>${name}</h2>
          <p class="soft">
            ${aboutText(instrument, name !== isin && isin)}${" "}
            <${CopyLink} key=${isin} isin=${isin} />
          </p>
        </div>
        <div class="buttons">
          <button
            type="button"
            class="quiet icon star"
            aria-pressed=${isWatched}
            aria-label=${say("Watch {name}", { name })}
            onClick=${() => onStar(isin)}
          >
            ${isWatched ? "★" : "☆"}
          </button>
          ${!isStanding && html`<button type="button" class="quiet icon" aria-label=${say("button::Close")} onClick=${onClose}>✕</button>`}
        </div>
      </header>
      ${row === undefined
        ? html`<p class="soft note">${say("No trade of this stock has come.")}</p>`
        : html`
        <div class="greys quote">
          <${Price} row=${row} />${" "}
          <span class=${row.change.kind}><${Change} row=${row} /></span>
          <span class="soft size">
            ${say("{size} at {time}", { size: priceText(row.item.size), time: zonedText(row.item.time / 1000) })}
            ${sessionText(row.item) && html` · <span class="session">${sessionText(row.item)}</span>`}
          </span>
        </div>
      `}
      <${StatusLines} row=${row} />
      <${Day} day=${row?.day === undefined ? feed.day : barOfDay(row.item)} nowMs=${line.clock()} />
      <${SeriesTable} items=${selection.series.items} prevClose=${instrument?.prev_close ?? null} />
      <${InstrumentAlerts} alerts=${alerts} store=${store} isin=${isin} />
      <${Tabs} label=${say("Of this stock")} tabs=${TABS} chosen=${tab} panel="detail-tab" onChoose=${setTab} />
      <div id="detail-tab" role="tabpanel" aria-labelledby=${`tab-${tab}`}>
        ${tab === "trades" && html`<${TradesTab} key=${isin} feed=${selection.trades} name=${name} />`}
        ${tab === "polling" && html`<${Compare} key=${isin} selection=${selection} ...${line} />`}
        ${tab === "chart" &&
          html`
              <${InstrumentChart}
                name=${name}
                isin=${isin}
                windows=${windows}
                kind=${row?.change.kind}
                feed=${feed}
                prevClose=${instrument?.prev_close ?? null}
                onChart=${onChart}
              />
              ${feed.interval === null &&
              html`
                ${history === "missing" &&
                html`<p class="soft note">${say("The windows before this page opened are not available.")}</p>`}
                <${Fold}
                  title=${say("Newest windows as a table")}
                  content=${() => html`<${Windows} windows=${windows} name=${name} />`}
                />
              `}
            `}
      </div>
    </section>
  `;
}

// The link opens this instrument; a token is not in it.
function CopyLink({ isin }) {
  const [answer, setAnswer] = useState("");
  const copy = async () => {
    const link = location.origin + location.pathname + withInstrument("", isin);
    try {
      await navigator.clipboard.writeText(link);
      setAnswer(say("Copied."));
    } catch {
      // A browser may refuse, and does without TLS.
      setAnswer(link);
    }
  };
  return html`
    <button type="button" class="quiet copy" onClick=${copy}>${say("Copy link")}</button>${" "}
    <span role="status">${answer}</span>
  `;
}

function Windows({ windows, name }) {
  const newest = windows.slice(-TABLE_ROWS).reverse();
  return html`
    <${FigureTable}
      caption=${say("Newest windows of {name}, newest first", { name })}
      first=${html`${say("Window's end")} <span class="zone">${zoneText()}</span>`}
      numbers=${[say("Price"), say("Size"), say("Trades")]}
    >
      ${newest.map(
        ({ window, price, size, trades }) => html`
          <tr key=${window}>
            <td>${clockText(window)}</td>
            <td class="number">${priceText(price)}</td>
            <td class="number">${priceText(size)}</td>
            <td class="number">${countText(trades)}</td>
          </tr>
        `,
      )}
    <//>
  `;
}
