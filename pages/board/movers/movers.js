// What moved in the newest minutes: lists of movers, bursts and moves, each in a line.

import { phrase, say } from "../../language.js";
import { zonedMinuteText } from "../../times.js";
import { fullText, sumText } from "../candles/bars.js";
import { shortText } from "../day/breadth.js";
import { clockText, countText, priceText, secondsText, zonedText } from "../format.js";
import { calm, html } from "../html.js";
import { langOf, nameOf } from "../names.js";
import { RECENT_MS, recent } from "./recent.js";

const MOVERS_SHOWN = 2; // of each list
const LISTS = {
  gainers: { title: phrase("Rising"), about: phrase("What rose most in these minutes, from its first price to its last.") },
  losers: { title: phrase("Falling"), about: phrase("What fell most in these minutes, from its first price to its last.") },
  value: { title: phrase("Most traded"), about: phrase("What most was paid for in these minutes.") },
};
const OF_DAY = {
  gainers: { title: phrase("Rising"), about: phrase("What is furthest above the price that its change is against.") },
  losers: { title: phrase("Falling"), about: phrase("What is furthest below the price that its change is against.") },
  value: { title: phrase("Most traded"), about: phrase("What most was paid for in the day so far.") },
};

// Properties: movers (null: there are none), instruments, onSelect(isin).
export const Movers = calm(({ movers, ...rest }) => {
  if (movers === null) return null;
  const minutes = Math.round((movers.end - movers.start) / 60_000);
  const [time, clock] = [zonedText(movers.end), zonedMinuteText(movers.end)];
  const lists = Object.entries(LISTS).map(([list, words]) => ({
    ...words,
    entries: movers[list].slice(0, MOVERS_SHOWN).map((mover) => ({ ...mover, about: moverText(mover, minutes), figure: figureOf(list, mover) })),
  }));
  const about = say("{minutes} min to {time}, {instruments} stocks", { minutes, time, instruments: movers.instruments });
  const note = html`<p class="soft" title=${about}>${say("{minutes} min to {time}", { minutes, time: clock })}</p>`;
  return html`<${Strip} id="movers" label=${say("Movers of {minutes} minutes, until {time}", { minutes, time })} lists=${lists} note=${note} ...${rest} />`;
});

// The same of the day so far (day.js), where nobody makes movers; nothing before anything has moved.
export const DayMovers = calm(({ movers, ...rest }) => {
  if (Object.keys(OF_DAY).every((list) => !movers[list].length)) return null;
  const time = zonedMinuteText(movers.timeMs);
  const lists = Object.entries(OF_DAY).map(([list, words]) => ({
    ...words,
    entries: movers[list].map((mover) => ({ ...mover, about: percentText(mover.percent), figure: figureOf(list, mover, shortText) })),
  }));
  const note = html`<p class="soft">${say("day to {time}", { time })}</p>`;
  return html`<${Strip} id="day-movers" label=${say("Movers of the day, until {time}", { time })} lists=${lists} note=${note} ...${rest} />`;
});

const figureOf = (list, { percent, value }, text = sumText) => (list === "value" ? html`<b>${text(value)}</b>` : html`<${Rate} percent=${percent} />`);

// Properties: bursts and moves (newest first), nowMs (the exchange's clock), instruments,
// onSelect(isin). A list is there only if some were ever told.
export function Events({ bursts, moves, nowMs, ...rest }) {
  const lists = [
    [BURSTS, recent(bursts, nowMs)],
    [MOVES, recent(moves, nowMs)],
  ].filter(([, found]) => found !== null);
  if (!lists.length) return null;
  const shown = lists.map(([{ text, figure, ...words }, found]) => ({
    ...words,
    entries: found.map((event) => ({
      ...event,
      about: text(event),
      figure: html`${figure(event)}<time class="soft">${clockText(event.endMs)}</time>`,
    })),
  }));
  const label = say("Bursts and moves of {minutes} minutes", { minutes: RECENT_MS / 60_000 });
  return html`<${Strip} id="events" label=${label} lists=${shown} ...${rest} />`;
}

// A line of lists. Properties: id, label, lists ([{title, about, entries: [{isin, endMs, about,
// figure}]}]), note (what stands behind them), instruments, onSelect(isin). Where it is narrow it
// scrolls: without a button in it, by itself.
const Strip = ({ id, label, lists, note, ...rest }) => html`
  <section id=${id} class="strip panel greys" aria-label=${label}>
    <div class="lists" tabindex=${lists.some(({ entries }) => entries.length) ? undefined : 0}>
      ${lists.map(
        ({ title, about, entries }) => html`
          <div key=${title} class="list">
            <h2 class="soft" title=${say(about)}>${say(title)}</h2>
            <ol>
              ${entries.length === 0 && html`<li class="soft">${say("none")}</li>`}
              ${entries.map((entry) => html`<${Item} key=${`${entry.isin} ${entry.endMs}`} entry=${entry} ...${rest} />`)}
            </ol>
          </div>
        `,
      )}
      ${note}
    </div>
  </section>
`;

function Item({ entry: { isin, about, figure }, instruments, onSelect }) {
  const instrument = instruments.get(isin);
  const name = nameOf(instrument, isin);
  return html`
    <li>
      <button type="button" class="quiet" title=${`${name}: ${about}`} onClick=${() => onSelect(isin)}>
        <span class="title" lang=${langOf(instrument)}>${name}</span>${" "}${figure}
      </button>
    </li>
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
