// What moved in the newest minutes: lists of movers, bursts and moves, each in a line.

import { phrase, say } from "../../language.js";
import { fullText, sumText } from "../candles/bars.js";
import { clockText, countText, priceText, secondsText, zonedText, zoneText } from "../format.js";
import { html } from "../html.js";
import { langOf, nameOf } from "../names.js";
import { RECENT_MS, recent } from "./recent.js";

const MOVERS_SHOWN = 2; // of each list
const LISTS = {
  gainers: { title: phrase("Rising"), about: phrase("What rose most in these minutes, from its first price to its last.") },
  losers: { title: phrase("Falling"), about: phrase("What fell most in these minutes, from its first price to its last.") },
  value: { title: phrase("Most traded"), about: phrase("What most was paid for in these minutes.") },
};

// Properties: movers (null: there are none), instruments, onSelect(isin).
export function Movers({ movers, instruments, onSelect }) {
  if (movers === null) return null;
  const minutes = Math.round((movers.end - movers.start) / 60_000);
  const label = say("Movers of {minutes} minutes, until {time}", { minutes, time: zonedText(movers.end) });
  return html`
    <section id="movers" class="strip panel greys" aria-label=${label}>
      <div class="lists">
        ${Object.entries(LISTS).map(
          ([list, { title, about }]) => html`
            <${List} key=${list} title=${say(title)} about=${say(about)}>
              ${movers[list].slice(0, MOVERS_SHOWN).map(
                (mover) => html`
                  <${Item} key=${mover.isin} isin=${mover.isin} instruments=${instruments} about=${moverText(mover, minutes)} onSelect=${onSelect}>
                    ${list === "value" ? html`<b>${sumText(mover.value)}</b>` : html`<${Rate} percent=${mover.percent} />`}
                  <//>
                `,
              )}
            <//>
          `,
        )}
        <p class="soft" title=${say("{minutes} min to {time}, {instruments} stocks", { minutes, time: zonedText(movers.end), instruments: movers.instruments })}>
          ${say("{minutes} min to {time}", { minutes, time: `${clockText(movers.end).slice(0, 5)} ${zoneText()}` })}
        </p>
      </div>
    </section>
  `;
}

// Properties: bursts and moves (newest first), nowMs (the exchange's clock), instruments,
// onSelect(isin). A list is there only if some were ever told.
export function Events({ bursts, moves, nowMs, instruments, onSelect }) {
  const lists = [
    [BURSTS, recent(bursts, nowMs)],
    [MOVES, recent(moves, nowMs)],
  ].filter(([, found]) => found !== null);
  if (!lists.length) return null;
  const minutes = RECENT_MS / 60_000;
  return html`
    <section id="events" class="strip panel greys" aria-label=${say("Bursts and moves of {minutes} minutes", { minutes })}>
      <div class="lists">
        ${lists.map(
          ([{ title, about, text, figure }, found]) => html`
            <${List} key=${title} title=${say(title)} about=${say(about)}>
              ${found.map(
                (event) => html`
                  <${Item} key=${`${event.isin} ${event.endMs}`} isin=${event.isin} instruments=${instruments} about=${text(event)} onSelect=${onSelect}>
                    ${figure(event)}<time class="soft">${clockText(event.endMs)}</time>
                  <//>
                `,
              )}
            <//>
          `,
        )}
      </div>
    </section>
  `;
}

const BURSTS = {
  title: phrase("Bursts"),
  about: phrase("Stocks whose trades followed one another without a pause. A burst is told when it has ended."),
  text: (burst) =>
    say("{trades} trades in {seconds} until {time}; from {open} to {close} ({percent})", {
      trades: burst.trades,
      seconds: secondsText(burst.endMs - burst.startMs),
      time: zonedText(burst.endMs),
      open: fullText(burst.open),
      close: fullText(burst.close),
      percent: percentText(burst.percent),
    }),
  figure: ({ trades, percent }) => html`
    <b>${say("{count} trade|{count} trades", { count: trades })}</b>${" "}<${Rate} percent=${percent} />${" "}
  `,
};

const MOVES = {
  title: phrase("Moves"),
  about: phrase("Prices that went far within seconds."),
  text: (move) =>
    say("from {from} to {to} ({percent}) in {seconds}, until {time}", {
      from: priceText(move.from),
      to: priceText(move.to),
      percent: percentText(move.percent),
      seconds: secondsText(move.endMs - move.startMs),
      time: zonedText(move.endMs),
    }),
  figure: ({ percent }) => html`<${Rate} percent=${percent} />${" "}`,
};

const List = ({ title, about, children }) => html`
  <div class="list">
    <h2 class="soft" title=${about}>${title}</h2>
    <ol>
      ${children.length ? children : html`<li class="soft">${say("none")}</li>`}
    </ol>
  </div>
`;

function Item({ isin, instruments, about, onSelect, children }) {
  const instrument = instruments.get(isin);
  const name = nameOf(instrument, isin);
  return html`
    <li>
      <button type="button" class="quiet" title=${`${name}: ${about}`} onClick=${() => onSelect(isin)}>
        <span class="title" lang=${langOf(instrument)}>${name}</span>${" "}${children}
      </button>
    </li>
  `;
}

const moverText = ({ open, close, percent, value, trades }, minutes) =>
  say("in {minutes} minutes from {open} to {close} ({percent}); {sum} paid in {trades} trades", {
    minutes,
    open: fullText(open),
    close: fullText(close),
    percent: percentText(percent),
    sum: fullText(value),
    trades: countText(trades),
  });

const Rate = ({ percent }) => html`<b class=${kindOf(percent)}>${percentText(percent)}</b>`;

const kindOf = (percent) => (Number(percent) > 0 ? "up" : Number(percent) < 0 ? "down" : "");

function percentText(percent) {
  if (percent === null) return "–";
  const sign = { up: "+", down: "−", "": "" }[kindOf(percent)];
  return `${sign}${Math.abs(Number(percent)).toFixed(2)}%`;
}
