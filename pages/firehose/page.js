// The page as a function of what it shows: the firehose on the left, the stream on the right.

import { clockText, countText, priceText, zoneText } from "../board/format.js";
import { html } from "../board/html.js";
import { langOf, nameOf } from "../board/names.js";
import { parts, say } from "../language.js";
import { TokenForm } from "../operations/token_form.js";
import { bytesText, timesText } from "./figures.js";
import { Tiles } from "./tiles.js";

const HOSE_FLASH_MS = 300;
const CALM_FLASH_MS = 1_000;

// `view` is what firehose.js knows and can do.
export function Page({ view }) {
  const { hose, calm, nowMs } = view;
  return html`
    <h1 class="visually-hidden">${say("Firehose beside calm")}</h1>
    <${Ratios} hose=${hose} calm=${calm} />
    ${view.isTokenWanted && html`<${TokenForm} onToken=${view.retry} />`}
    <div class="sides">
      <section class="side panel hose" aria-labelledby="hose-title">
        <header>
          <div>
            <h2 id="hose-title">${say("Firehose")}</h2>
            <p class="soft">${say("each trade of the log as it comes")}</p>
          </div>
          <button id="pause" type="button" aria-pressed=${view.isPaused} aria-keyshortcuts="p" onClick=${view.togglePause}>
            ${view.isPaused ? say("Play") : say("Pause")}
          </button>
        </header>
        <${Figures}
          figures=${[
            [say("Trades a second"), countText(Math.round(hose.rate("trades", nowMs))), hose.total("trades"), countText],
            [say("Bytes a second"), bytesText(hose.rate("bytes", nowMs)), hose.total("bytes"), bytesText],
            [say("Changes on the screen a second"), countText(Math.round(hose.rate("changes", nowMs))), hose.total("changes"), countText],
          ]}
        />
        ${view.problem !== null && html`<p class="complaint" role="status">${say(view.problem)}</p>`}
        ${view.isPaused && html`<p class="note soft">${say("Paused: trades are counted, and not drawn.")}</p>`}
        <div id="hose" data-away=${view.problem !== null} aria-hidden="true"></div>
        <p id="account" class="soft note">${accountText(hose)}</p>
        ${hose.total("undecoded") > 0 &&
        html`
          <p class="soft note">
            ${say("Entries that are not in the form of the log's own trades are shown as bytes: a job with a decoder knows what they stand for, this page does not.")}
          </p>
        `}
      </section>
      <section class="side panel calm" aria-labelledby="calm-title">
        <header>
          <div>
            <h2 id="calm-title">${say("Stream")}</h2>
            <p class="soft">${say("the newest price of each stock, every {seconds} s", { seconds: view.windowMs / 1_000 })}</p>
          </div>
        </header>
        <${Figures}
          figures=${[
            [say("Rows a second"), countText(Math.round(calm.rate("rows", nowMs))), calm.total("rows"), countText],
            [say("Bytes a second"), bytesText(calm.rate("bytes", nowMs)), calm.total("bytes"), bytesText],
            [say("Changes on the screen a second"), countText(Math.round(calm.rate("changes", nowMs))), calm.total("changes"), countText],
          ]}
        />
        <div class="greys">
          <${Tiles} isins=${view.isins} instruments=${view.instruments} prices=${view.calmPrices} flashMs=${CALM_FLASH_MS} />
          <${Windows} windows=${view.windows} />
        </div>
      </section>
    </div>
    <p class="foot soft">
      ${parts(
        "Both sides count everything since this page opened: the left each trade that was appended to the log, by the log's own count, and its bytes there; the right each row and byte that a browser gets which follows every stock. Changes are those that this page has drawn. {key} pauses the left side.",
        { key: html`<kbd>p</kbd>` },
      )}${" "}
      ${say("Times: {zone}.", { zone: zoneText() })}
    </p>
  `;
}

function Ratios({ hose, calm }) {
  const times = [
    ["changes", timesText(hose.total("changes"), calm.total("changes")), say("fewer changes on the screen")],
    ["rows", timesText(hose.total("trades"), calm.total("rows")), say("fewer rows than trades")],
    ["bytes", timesText(hose.total("bytes"), calm.total("bytes")), say("fewer bytes")],
  ];
  return html`
    <dl class="ratios">
      ${times.map(
        ([name, text, words]) => html`
          <div key=${name} data-ratio=${name}>
            <dd>${text === null ? "–" : `${text}×`}</dd>
            <dt>${words}</dt>
          </div>
        `,
      )}
    </dl>
  `;
}

function Figures({ figures }) {
  return html`
    <dl class="figures">
      ${figures.map(
        ([name, rate, total, text]) => html`
          <div key=${name}>
            <dt>${name}</dt>
            <dd><b>${rate}</b> <span class="soft">${say("{total} in all", { total: text(total) })}</span></dd>
          </div>
        `,
      )}
    </dl>
  `;
}

function accountText(hose) {
  const [all, shown, leftOut] = ["trades", "shown", "leftOut"].map((name) => countText(hose.total(name)));
  const account = say("{all} trades = {shown} sent to this page + {leftOut} left out.", { all, shown, leftOut });
  const unread = hose.total("unread");
  return unread > 0 ? `${account} ${say("Of {count} the bytes are estimated.", { count: unread })}` : account;
}

// Drawn many times a second, into #hose: nothing else of the page is drawn with it.
export function Hose({ view }) {
  return html`
    <${Tiles} isins=${view.isins} instruments=${view.instruments} prices=${view.hosePrices} flashMs=${HOSE_FLASH_MS} />
    <table class="lines">
      <tbody>
        ${view.lines.map((trade, place) => html`<${Line} key=${place} trade=${trade} instruments=${view.instruments} />`)}
      </tbody>
    </table>
  `;
}

function Line({ trade, instruments }) {
  if (trade.isin === undefined) {
    return html`
      <tr>
        <td colspan="3" class="code bytes">${trade.text}</td>
        <td class="number soft">${trade.bytes} B</td>
      </tr>
    `;
  }
  const instrument = instruments.get(trade.isin);
  const name = nameOf(instrument, trade.isin);
  return html`
    <tr>
      <td class="soft time">${clockText(trade.time / 1_000, { withMilliseconds: true })}</td>
      <td class="name" lang=${langOf(instrument)} title=${name}>${name}</td>
      <td class="number">${priceText(trade.price)}</td>
      <td class="number soft">${priceText(trade.size)}</td>
    </tr>
  `;
}

function Windows({ windows }) {
  return html`
    <table class="lines">
      <caption class="visually-hidden">${say("Newest windows, newest first")}</caption>
      <thead>
        <tr>
          <th scope="col">${say("Window")}</th>
          <th scope="col" class="number">${say("Rows")}</th>
          <th scope="col" class="number">${say("for trades")}</th>
          <th scope="col" class="number">${say("bytes::Size")}</th>
        </tr>
      </thead>
      <tbody>
        ${windows.map(
          ({ window, rows, trades, bytes }) => html`
            <tr key=${window}>
              <td class="soft time">${clockText(window)}</td>
              <td class="number">${countText(rows)}</td>
              <td class="number">${countText(trades)}</td>
              <td class="number soft">${bytesText(bytes)}</td>
            </tr>
          `,
        )}
      </tbody>
    </table>
  `;
}
