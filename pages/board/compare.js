// Polling beside pushing, for one instrument: what each shows, how stale it is and was.

import { useEffect, useState } from "preact/hooks";

import { phrase, say } from "../language.js";
import { priceText, secondsText } from "./format.js";
import { html } from "./html.js";
import { POLL_MS } from "./selection.js";
import { summary } from "./staleness.js";

const TICK_MS = 500;
const SPAN_MS = 3 * 60_000;
const [WIDTH, HEIGHT] = [360, 96];

const CHANNELS = [
  { id: "polled", title: phrase("Polling, every {seconds} s") },
  { id: "pushed", title: phrase("Pushing, every window") },
];

// Properties: selection, clock (the server's), heardMs (when the stream last spoke, by
// that clock), isLive (whether it does).
export function Compare({ selection, clock, heardMs, isLive }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((count) => count + 1), TICK_MS);
    return () => clearInterval(timer);
  }, []);
  const nowMs = clock();
  const fromMs = Math.max(nowMs - SPAN_MS, selection.comparedMs);
  const views = CHANNELS.map((channel) => {
    const points = selection.staleness.series(channel.id, fromMs, nowMs, TICK_MS);
    const title = say(channel.title, { seconds: POLL_MS / 1000 });
    return { ...channel, title, points, summary: summary(points) };
  });
  const { polled, pushed } = selection;
  return html`
    <section class="compare" aria-labelledby="compare-title">
      <h3 id="compare-title">${say("Polling and pushing compared")}</h3>
      <p class="soft">
        ${say("How long each has shown a price after a newer trade was made. The past is drawn with what is known now.")}
      </p>
      <div class="sides">
        <${Side}
          view=${views[0]}
          item=${polled.item}
          isFollowed=${isLive || !polled.problem}
          staleMs=${selection.staleness.at("polled", nowMs)}
          refreshedMs=${polled.refreshedMs === null ? null : nowMs - polled.refreshedMs}
          note=${polled.problem
            ? say("Failed: {problem}", { problem: polled.problem })
            : say("{count} request, {unchanged} unchanged|{count} requests, {unchanged} unchanged", { count: polled.polls, unchanged: polled.unchanged })}
        />
        <${Side}
          view=${views[1]}
          item=${pushed}
          isFollowed=${isLive}
          staleMs=${selection.staleness.at("pushed", nowMs)}
          refreshedMs=${heardMs === null ? null : nowMs - heardMs}
          note=${say("1 connection for all stocks")}
        />
      </div>
      <${Picture} views=${views} nowMs=${nowMs} />
    </section>
  `;
}

function Side({ view, item, isFollowed, staleMs, refreshedMs, note }) {
  const isStale = staleMs > 0 || !isFollowed;
  return html`
    <div class=${`side ${view.id}`} data-stale=${isStale}>
      <h4>${view.title}</h4>
      <p class="price">${item ? priceText(item.price) : "–"}</p>
      <p class="verdict">
        ${verdict(staleMs, isFollowed)}
      </p>
      <dl>
        <div><dt>${say("Refreshed")}</dt><dd>${refreshedMs === null ? "–" : say("{time} ago", { time: secondsText(refreshedMs) })}</dd></div>
        <div><dt>${say("Stale, mean")}</dt><dd>${view.summary ? secondsText(view.summary.mean) : "–"}</dd></div>
        <div><dt>${say("Stale, at most")}</dt><dd>${view.summary ? secondsText(view.summary.most) : "–"}</dd></div>
      </dl>
      <p class="note soft">${note}</p>
    </div>
  `;
}

function verdict(staleMs, isFollowed) {
  if (staleMs === null) return "–";
  if (staleMs > 0) return say("out of date for {time}", { time: secondsText(staleMs) });
  return isFollowed ? say("up to date") : say("perhaps out of date");
}

// Staleness over the last minutes: two areas over one scale.
function Picture({ views, nowMs }) {
  const most = Math.max(POLL_MS, ...views.flatMap(({ points }) => points.map(({ ms }) => ms)));
  const x = (timeMs) => WIDTH * (1 - (nowMs - timeMs) / SPAN_MS);
  const y = (ms) => HEIGHT - (HEIGHT - 4) * (ms / most);
  const words = views
    .map(({ title, summary: all }) => `${title}: ${all ? secondsText(all.mean) : say("nothing yet")}`)
    .join(", ");
  return html`
    <figure class="picture">
      <svg
        viewBox=${`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label=${say("Mean staleness in the last minutes. {words}", { words })}
      >
        <line class="level" x1="0" x2=${WIDTH} y1=${y(POLL_MS)} y2=${y(POLL_MS)} />
        <line class="level" x1="0" x2=${WIDTH} y1=${y(POLL_MS / 2)} y2=${y(POLL_MS / 2)} />
        ${views.map(({ id, points }) => html`<path class=${id} d=${area(points, x, y)} />`)}
        <line class="level" x1="0" x2=${WIDTH} y1=${HEIGHT - 0.5} y2=${HEIGHT - 0.5} />
      </svg>
      <figcaption class="soft" aria-hidden="true">
        <span>${say("3 min ago")}</span>
        <span class="key polled">${say("polling")}</span>
        <span class="key pushed">${say("pushing")}</span>
        <span>${say("0 to {seconds} s", { seconds: Math.ceil(most / 1000) })}</span>
        <span>${say("now")}</span>
      </figcaption>
    </figure>
  `;
}

function area(points, x, y) {
  if (!points.length) return "";
  const line = points.map(({ timeMs, ms }) => `${x(timeMs).toFixed(1)},${y(ms).toFixed(1)}`);
  const ends = [points[0], points.at(-1)].map(({ timeMs }) => x(timeMs).toFixed(1));
  return `M${ends[0]},${HEIGHT} L${line.join(" L")} L${ends[1]},${HEIGHT}Z`;
}
