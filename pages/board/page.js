// The board's page as a function of what it shows.

import { parts, phrase, say } from "../language.js";
import { AlertMenu, Notices } from "./alerts/panels.js";
import { ColumnMenu } from "./choice/column_menu.js";
import { ListMenu } from "./choice/list_menu.js";
import { listName } from "./choice/lists.js";
import { glance } from "./day/breadth.js";
import { Glance } from "./day/glance.js";
import { clockText, countText, zonedText, zoneText } from "./format.js";
import { Detail } from "./detail.js";
import { ChartGrid } from "./grid/chart_grid.js";
import { calm, html } from "./html.js";
import { MarketMap } from "./map/market_map.js";
import { closedText, openText } from "./market_hours.js";
import { DayMovers, Events, Movers } from "./movers/movers.js";
import { Table } from "./table.js";
import { ViewSwitch } from "./views/switch.js";

const REFERENCES = {
  close: phrase("Change is against the previous close."),
  first: phrase("Change is against the first price seen since this page opened."),
  mixed: phrase(
    "Change is against the previous close. Where none is known, it is marked * and against the first price seen since this page opened.",
  ),
};

// Where nobody knows the day, the page says what its ranges are of.
function sinceText({ columns }, hasDays) {
  if (hasDays || columns.every(({ id }) => id !== "range")) return "";
  return ` ${say("Range is of the newest half hour and since this page opened.")}`;
}

// `view` is what board.js knows and can do; there is no other state than that, but for
// where the table is scrolled to.
export function Page({ view }) {
  const { store, watched, opened: selection } = view;
  const { reference } = store;
  const isStanding = view.selection === null;
  return html`
    <div class="board" data-instrument=${selection && (view.isSheet ? "sheet" : "beside")}>
      <div class="market" inert=${view.isSheet}>
        <h1 class="visually-hidden">${say("Market board")}</h1>
        <div class="top">
          <${ViewSwitch} shown=${view.place.name} onView=${view.showView} />
          <${Tools} view=${view} />
          <p id="hours" class="soft">${openText(view.hours, Date.now())}</p>
        </div>
        <p id="notice" role="status">${strangeText(view) || closedText(view.hours, Date.now()) || quietText(store.quiet(), view.windowMs)}</p>
        <${Glance}
          sums=${glance(store.all, store.indexBases)}
          markets=${view.filters.markets}
          onMarket=${view.toggleMarket}
          reference=${reference}
        />
        <${Movers} movers=${view.movers} instruments=${store.instruments} onSelect=${view.select} />
        ${view.movers === null &&
        view.dayMovers !== null &&
        html`<${DayMovers} movers=${view.dayMovers} instruments=${store.instruments} onSelect=${view.select} />`}
        <${Events}
          bursts=${view.bursts}
          moves=${view.moves}
          nowMs=${store.newestMs}
          instruments=${store.instruments}
          onSelect=${view.select}
        />
        <${VIEWS[view.place.name]} view=${view} reference=${reference} />
        <div class="foot soft">
          <p>${say(REFERENCES[reference])}${view.place.name === "table" && sinceText(view.layout, store.hasDays)}</p>
          ${KEYS[view.place.name]()}
          <details id="stream">
            <summary>${say("About the stream")}</summary>
            <${Figures} view=${view} />
          </details>
        </div>
      </div>
      ${view.menu === "columns" &&
      html`
        <${ColumnMenu}
          choice=${view.columnChoice}
          layout=${view.layout}
          hasSums=${store.hasSums}
          onChoice=${view.setColumns}
          onClose=${view.closeMenu}
        />
      `}
      ${view.menu === "lists" &&
      html`
        <${ListMenu}
          lists=${view.lists}
          instruments=${store.instruments}
          isinOf=${(text) => store.isinOf(text)}
          onLists=${view.setLists}
          onClose=${view.closeMenu}
        />
      `}
      ${view.menu === "alerts" && html`<${AlertMenu} alerts=${view.alerts} store=${store} onClose=${view.closeMenu} />`}
      <${Notices} alerts=${view.alerts} store=${store} onSelect=${view.select} />
      ${view.isSheet && html`<div class="backdrop" onClick=${view.close}></div>`}
      ${selection &&
      html`
        <${Detail}
          key=${isStanding}
          isStanding=${isStanding}
          selection=${selection}
          row=${store.rows.get(selection.isin)}
          clock=${view.clock}
          heardMs=${view.heardMs}
          isLive=${view.isLive}
          isWatched=${watched.has(selection.isin)}
          alerts=${view.alerts}
          store=${store}
          onStar=${view.star}
          onClose=${view.close}
          onChart=${view.chooseChart}
        />
      `}
    </div>
  `;
}

// The first stops of whoever goes through the page by keyboard or by ear.
export function Stops({ view }) {
  const stop = (text, onClick) => html`<button type="button" onClick=${onClick}>${text}</button>`;
  return html`
    <nav aria-label=${say("Skip to")}>
      ${stop(say("To the search"), view.enterSearch)}
      ${stop(say("To the stocks"), view.enterMain)}
      ${view.opened !== null && stop(say("To the open stock"), view.enterDetail)}
    </nav>
  `;
}

function TableView({ view, reference }) {
  const { store, rows } = view;
  return html`
    <section class="panel table" aria-label=${say("Stocks")}>
      <${Table}
        rows=${rows}
        layout=${view.layout}
        hasDays=${store.hasDays}
        isMixed=${reference === "mixed"}
        order=${view.order}
        onOrder=${view.setOrder}
        window=${store.window}
        watched=${view.watched}
        onStar=${view.star}
        selected=${view.selection?.isin}
        onSelect=${view.select}
        onTop=${view.enterSearch}
        onTouch=${view.hold}
        onWidth=${view.setWidth}
        onFigures=${view.setFigures}
      />
      ${rows.length === 0 && html`<p id="empty" class="soft">${emptyText(view)}</p>`}
    </section>
  `;
}

function MapView({ view }) {
  const { store, rows } = view;
  if (!rows.length) return html`<div class="panel table"><p id="empty" class="soft">${emptyText(view)}</p></div>`;
  return html`
    <${MarketMap}
      rows=${rows}
      rowOf=${(isin) => store.rows.get(isin)}
      hasSums=${store.hasSums}
      window=${store.window}
      asked=${askedText(view)}
      group=${view.place.group}
      onGroup=${view.showGroup}
      selected=${view.selection?.isin}
      onSelect=${view.select}
    />
  `;
}

// Another text for another question: the map follows a visitor at once, the market calmly.
function askedText({ search, filters, isWatchListOnly, watched, place }) {
  const { markets, sectors } = filters;
  return JSON.stringify([place.group, search, [...markets], [...sectors], isWatchListOnly && [...watched]]);
}

// Charts are in the order of names: before those have come, others would be loaded.
const ChartsView = ({ view }) => html`
  <${ChartGrid}
    rows=${view.areNamesAwaited ? [] : view.rows}
    list=${view.watched.size ? listName(view.lists.active) : say("Most traded")}
    hint=${view.watched.size ? "" : say("Press ☆ in the table to see stocks of your own here.")}
    charts=${view.charts}
    interval=${view.chartInterval()}
    onChart=${view.chooseChart}
    selected=${view.selection?.isin}
    onSelect=${view.select}
    emptyText=${view.areNamesAwaited ? "" : emptyText(view)}
  />
`;

const VIEWS = { table: TableView, map: MapView, charts: ChartsView };

const key = (text) => html`<kbd>${text}</kbd>`;

const KEYS = {
  table: () => html`
    <span id="keys">
      ${parts("Keys: {slash} searches, {up} {down} go from stock to stock, {enter} opens one, {esc} closes it, {space} stars it.", {
        slash: key("/"),
        up: key("↑"),
        down: key("↓"),
        enter: key("Enter"),
        esc: key("Esc"),
        space: key("Space"),
      })}
    </span>
  `,
  map: () => html`
    <span id="keys">
      ${parts("Keys: {slash} searches, arrows go from tile to tile, {enter} opens a stock, {plus} shows its group alone, {esc} goes back.", {
        slash: key("/"),
        enter: key("Enter"),
        plus: key("+"),
        esc: key("Esc"),
      })}
    </span>
  `,
  charts: () => html`
    <span>
      ${say("Times: {zone}.", { zone: zoneText() })}${" "}
      <a href="https://www.tradingview.com/" target="_blank" rel="noopener noreferrer">${say("Charts by TradingView")}</a>
    </span>
  `,
};

// Enter opens the first stock that is found.
function submit(event, view) {
  event.preventDefault();
  view.openFirst();
}

function leaveSearch(event, view) {
  if (event.key !== "ArrowDown" || event.isComposing) return;
  event.preventDefault();
  view.enterMain();
}

function Tools({ view }) {
  const { store, watched, rows } = view;
  const isCharts = view.place.name === "charts"; // they are those of the list, always
  const placeholder = store.instruments.size ? say("Name, code, sector…") : "ISIN";
  return html`
    <form id="tools" role="search" onSubmit=${(event) => submit(event, view)}>
      <input
        id="search"
        type="search"
        aria-keyshortcuts="/"
        aria-label=${say("Search by name, code, ISIN, market or sector")}
        placeholder=${placeholder}
        autocomplete="off"
        spellcheck=${false}
        value=${view.search}
        onInput=${(event) => view.setSearch(event.target.value)}
        onKeyDown=${(event) => leaveSearch(event, view)}
      />
      <button
        id="watched"
        type="button"
        class="chip"
        aria-pressed=${view.isWatchListOnly || isCharts}
        disabled=${isCharts}
        onClick=${view.toggleWatchListOnly}
      >
        <span aria-hidden="true">★</span> <span class="list">${listName(view.lists.active)}</span>${" "}
        <span class="count">${watched.size}</span>
      </button>
      <button id="lists" type="button" class="quiet icon" aria-label=${say("Watch-lists")} title=${say("Watch-lists")} onClick=${() => view.openMenu("lists")}>⋯</button>
      <${Sectors} known=${store.sectors} chosen=${view.filters.sectors} onSector=${view.toggleSector} />
      ${view.place.name === "table" &&
      html`
        <button id="columns" type="button" class="quiet icon" aria-label=${say("Columns")} title=${say("Columns")} onClick=${() => view.openMenu("columns")}>
          <svg viewBox="0 0 24 24" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="2"><rect x="4" y="5" width="16" height="14" rx="2" /><path d="M9.5 5v14M14.5 5v14" /></svg>
        </button>
      `}
      <button id="alerts" type="button" class="quiet icon" aria-label=${say("Alerts")} title=${say("Alerts")} onClick=${() => view.openMenu("alerts")}>
        <svg viewBox="0 0 24 24" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="2" stroke-linejoin="round"><path d="M6 16V11a6 6 0 0 1 12 0v5l2 2H4zM10 21h4" /></svg>
      </button>
      <p id="shown" class="soft" aria-live="polite">
        ${isCharts || rows.length === store.rows.size ? "" : say("{count} found", { count: rows.length })}
      </p>
    </form>
  `;
}

// Each sector that is chosen is a chip, which a press takes away.
const Sectors = calm(({ known, chosen, onSector }) => {
  if (!known.length && !chosen.size) return null;
  const choose = (event) => {
    onSector(event.target.value);
    event.target.value = "";
  };
  return html`
    <select id="sector" aria-label=${say("Show a sector")} onChange=${choose}>
      <option value="">${chosen.size ? say("And sector…") : say("All sectors")}</option>
      ${known
        .filter(([name]) => !chosen.has(name))
        .map(([name, count]) => html`<option key=${name} value=${name}>${name} (${count})</option>`)}
    </select>
    ${[...chosen].map(
      (name) => html`
        <button key=${name} type="button" class="chip sector" aria-pressed="true" aria-label=${say("No longer {name}", { name })} onClick=${() => onSector(name)}>
          ${name} <span aria-hidden="true">✕</span>
        </button>
      `,
    )}
  `;
});

function Figures({ view }) {
  const { store } = view;
  const perRow = store.totalRows ? (store.totalTrades / store.totalRows).toFixed(1) : "–";
  return html`
    <dl id="figures" class="greys">
      <${Figure} id="window" name=${say("Window")} about=${say("when the newest window ended")} zone=${zoneText()} text=${store.window === null ? "–" : clockText(store.window)} />
      <${Figure} id="lag" name=${say("Lag")} about=${say("how long after its end the newest window was here")} text=${view.lagMs === null ? "–" : `${Math.round(view.lagMs)} ms`} />
      <${Figure} id="instruments" name=${say("Stocks")} about=${say("how many stocks are known")} text=${countText(store.rows.size)} />
      <${Figure} id="changed" name=${say("Changed")} about=${say("how many stocks the newest window has")} text=${countText(store.changed)} />
      <${Figure} id="trades" name=${say("Trades")} about=${say("how many trades the newest window stands for")} text=${countText(store.tradesInWindow)} />
      <${Figure} id="ratio" name=${say("Trades per row")} about=${say("for how many trades a row has stood on average since this page opened")} text=${perRow} />
    </dl>
  `;
}

const Figure = ({ id, name, about, zone, text }) =>
  html`<div class=${id} title=${about}><dt>${name}${zone && html` <span class="zone">${zone}</span>`}</dt><dd id=${id}>${text}</dd></div>`;

const strangeText = ({ strangeLink: link }) =>
  link === null ? "" : say("No stock has the code or ISIN “{link}” of this address.", { link: link.slice(0, 20) });

// One quiet window is usual; two in a row are worth a word.
function quietText({ quietMs, sinceMs }, windowMs) {
  if (quietMs < 2 * windowMs) return "";
  if (sinceMs === null) return say("Windows come, but no trade since this page opened.");
  return say("Windows come, but no trade since {time}.", { time: zonedText(sinceMs) });
}

function emptyText({ store, problem, isWatchListOnly, search, watched, place }) {
  if (problem !== null) return problem;
  if (!store.rows.size) return say("Waiting for the first window.");
  const isList = isWatchListOnly || (place.name === "charts" && watched.size);
  if (isList && !watched.size) return say("No stock is starred: press ☆ in a row to watch it.");
  if (isList && !search) return say("No stock of the watch-list has traded yet.");
  return say("Nothing matches.");
}
