// The board's page as a function of what it shows.

import { clockText, countText } from "./format.js";
import { Movers } from "./candles/issue_chart.js";
import { Detail } from "./detail.js";
import { html } from "./html.js";
import { Table } from "./table.js";

const REFERENCES = {
  close: "Change is against the previous close.",
  first: "Change is against the first price seen since this page opened.",
  mixed:
    "Change is against the previous close. Where none is known, it is marked * and against the first price seen since this page opened.",
};

// `view` is what board.js knows and can do; there is no other state than that, but for
// where the table is scrolled to.
export function Page({ view }) {
  const { store, rows, watched, selection } = view;
  return html`
    <div class="board" data-issue=${selection && (view.isSheet ? "sheet" : "beside")}>
      <div class="market" inert=${view.isSheet}>
        <h1 class="visually-hidden">Market board</h1>
        <div class="top">
          <${Tools} view=${view} />
          <${Figures} view=${view} />
        </div>
        <p id="notice" role="status">${strangeText(view) || quietText(store.quiet(), view.windowMs)}</p>
        <${Movers} movers=${view.movers} issues=${store.issues} onSelect=${view.select} />
        <div class="panel table">
          <${Table}
            rows=${rows}
            layout=${view.layout}
            isMixed=${store.reference === "mixed"}
            order=${view.order}
            onOrder=${view.setOrder}
            window=${store.window}
            watched=${watched}
            onStar=${view.star}
            selected=${selection?.isin}
            onSelect=${view.select}
            onTouch=${view.hold}
            onWidth=${view.setWidth}
          />
          ${rows.length === 0 && html`<p id="empty" class="soft">${emptyText(view)}</p>`}
        </div>
        <p class="foot soft">
          <span>${REFERENCES[store.reference]}</span>
          <span id="keys">
            Keys: <kbd>/</kbd> searches, <kbd>↑</kbd> <kbd>↓</kbd> go from issue to issue,${" "}
            <kbd>Enter</kbd> opens one, <kbd>Esc</kbd> closes it, <kbd>Space</kbd> stars it.
          </span>
        </p>
      </div>
      ${view.isSheet && html`<div class="backdrop" onClick=${view.close}></div>`}
      ${selection &&
      html`
        <${Detail}
          selection=${selection}
          row=${store.rows.get(selection.isin)}
          clock=${view.clock}
          heardMs=${view.heardMs}
          isLive=${view.isLive}
          isWatched=${watched.has(selection.isin)}
          onStar=${view.star}
          onClose=${view.close}
          onChart=${view.chooseChart}
        />
      `}
    </div>
  `;
}

function Tools({ view }) {
  const { store, watched, rows } = view;
  const placeholder = store.issues.size ? "Name, code, sector…" : "ISIN";
  return html`
    <form id="tools" role="search" onSubmit=${(event) => event.preventDefault()}>
      <input
        id="search"
        type="search"
        aria-keyshortcuts="/"
        aria-label="Search by name, code, ISIN, market or sector"
        placeholder=${placeholder}
        autocomplete="off"
        spellcheck=${false}
        value=${view.search}
        onInput=${(event) => view.setSearch(event.target.value)}
      />
      <button
        id="watched"
        type="button"
        class="chip"
        aria-pressed=${view.isWatchListOnly}
        onClick=${view.toggleWatchListOnly}
      >
        <span aria-hidden="true">★</span> Watch-list <span class="count">${watched.size}</span>
      </button>
      <p id="shown" class="soft" aria-live="polite">
        ${rows.length === store.rows.size ? "" : `${countText(rows.length)} found`}
      </p>
    </form>
  `;
}

function Figures({ view }) {
  const { store } = view;
  const perRow = store.totalRows ? (store.totalTrades / store.totalRows).toFixed(1) : "–";
  return html`
    <dl id="figures" class="greys">
      <${Figure} id="window" name="Window" text=${store.window === null ? "–" : clockText(store.window)} />
      <${Figure} id="lag" name="Lag" text=${view.lagMs === null ? "–" : `${Math.round(view.lagMs)} ms`} />
      <${Figure} id="issues" name="Issues" text=${countText(store.rows.size)} />
      <${Figure} id="changed" name="Changed" text=${countText(store.changed)} />
      <${Figure} id="trades" name="Trades" text=${countText(store.tradesInWindow)} />
      <${Figure} id="ratio" name="Trades per row" text=${perRow} />
    </dl>
  `;
}

const Figure = ({ id, name, text }) => html`<div class=${id}><dt>${name}</dt><dd id=${id}>${text}</dd></div>`;

const strangeText = ({ strangeLink: link }) =>
  link === null ? "" : `No issue has the code or ISIN “${link.slice(0, 20)}” of this address.`;

// One quiet window is usual; two in a row are worth a word.
function quietText({ quietMs, sinceMs }, windowMs) {
  if (quietMs < 2 * windowMs) return "";
  const since = sinceMs === null ? "this page opened" : clockText(sinceMs);
  return `Windows come, but no trade since ${since}.`;
}

function emptyText({ store, problem, isWatchListOnly, search, watched }) {
  if (problem !== null) return problem;
  if (!store.rows.size) return "Waiting for the first window.";
  if (isWatchListOnly && !watched.size) return "No issue is starred: press ☆ in a row to watch it.";
  if (isWatchListOnly && !search) return "No issue of the watch-list has traded yet.";
  return "Nothing matches.";
}
