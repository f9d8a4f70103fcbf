// The pipeline as it flows: six stages, and what passes between them.

import { html } from "../board/html.js";
import { phrase, say } from "../language.js";
import { dayClockText } from "../times.js";
import { refused } from "./books.js";
import { STATES } from "./client_table.js";
import { told } from "./gateway_words.js";
import { feedRate, rates } from "./history.js";
import { Level } from "./level.js";
import { bytes, clock, count, duration, rate } from "./words.js";

const PARTITIONS = 4;

const TITLES = {
  feed: phrase("Feeds"),
  log: phrase("Trade log"),
  job: phrase("Throttle"),
  stream: phrase("Redis stream"),
  gateway: phrase("Gateway"),
  clients: phrase("Browsers"),
};

export function Flow({ known }) {
  const { pipeline, windows, logCounts } = known;
  const published = rates(windows, pipeline.stream);
  // By the log, if it can be counted: trades come in whether or not a job reads them.
  const perSecond = { ...published, trades: feedRate(logCounts) ?? published.trades };
  const parts = {
    feed: FeedStage,
    log: LogStage,
    job: JobStage,
    stream: StreamStage,
    gateway: GatewayStage,
    clients: ClientsStage,
  };
  const links = {
    feed: [rate(perSecond.trades), say("trades/s")],
    log: [count(waiting(pipeline.jobs)), say("trades waiting")],
    job: [rate(perSecond.rows), say("rows/s")],
    stream: [duration(pipeline.fanout.publish_lag_ms), say("to publish")],
    gateway: [duration(pipeline.fanout.fanout_lag_ms), say("to fan out")],
  };
  return html`
    <section class="flow greys" aria-labelledby="flow-title">
      <h2 id="flow-title" class="visually-hidden">${say("Pipeline")}</h2>
      <ol>
        ${Object.entries(pipeline.diagnosis.stages).map(
          ([name, { level, word, is_flowing: isFlowing }]) => html`
            <li key=${name} class="stage" data-stage=${name} data-level=${level}>
              <div class="card panel">
                <h3>${say(TITLES[name])}</h3>
                <${Level} level=${level} word=${told(word)} />
                <${parts[name]} pipeline=${pipeline} perSecond=${perSecond} />
              </div>
              ${links[name] && html`<${Link} link=${links[name]} isFlowing=${isFlowing} />`}
            </li>
          `,
        )}
      </ol>
    </section>
  `;
}

function Link({ link: [figure, unit], isFlowing }) {
  return html`
    <p class="link" data-flows=${isFlowing}>
      <svg viewBox="0 0 40 10" preserveAspectRatio="none" aria-hidden="true"><path d="M0 5h40" /></svg>
      <span><b>${isFlowing ? figure : "–"}</b> ${unit}</span>
    </p>
  `;
}

// How many of something, a dash where that is not known.
const counted = (text, number) => say(text, { count: number ?? "–" });

const Big = ({ figure, unit }) => html`<p class="big"><b>${figure}</b> <span>${unit}</span></p>`;

const Facts = ({ facts }) => html`
  <dl>
    ${facts.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>
`;

function hoursText({ opened_ms: openedMs, closes_ms: closesMs, opens_ms: opensMs }, nowMs) {
  if (openedMs !== null && closesMs === null) return say("market::open");
  if (openedMs !== null) return say("open until {time}", { time: clock(closesMs, nowMs) });
  if (opensMs === null) return say("market::closed");
  return say("closed, opens {time}", { time: dayClockText(opensMs, nowMs) });
}

function FeedStage({ pipeline: { feed, markets, now_ms: nowMs }, perSecond }) {
  return html`
    <${Big} figure=${rate(perSecond.trades)} unit=${say("trades/s")} />
    <${Facts} facts=${[
      [say("newest"), clock(feed.last_append_ms, nowMs)],
      [say("quiet for"), duration(feed.quiet_ms)],
      ...markets.map((market) => [market.market, hoursText(market, nowMs)]),
    ]} />
  `;
}

const waiting = (jobs) => {
  const lags = jobs
    .filter((job) => !job.is_retired)
    .flatMap((job) => job.partitions.map(({ lag }) => lag))
    .filter((lag) => (lag ?? null) !== null);
  return lags.length ? lags.reduce((a, b) => a + b, 0) : null;
};

// Every partition's end is in the ledger: here are those with most that waits.
function LogStage({ pipeline: { log, jobs, now_ms: nowMs } }) {
  const lags = new Map(
    jobs.flatMap((job) => job.partitions.map(({ partition, lag }) => [partition, lag])),
  );
  const all = log.partitions.map((one) => ({ ...one, lag: lags.get(one.partition) ?? null }));
  const shown =
    all.length > PARTITIONS
      ? all.toSorted((a, b) => b.lag - a.lag).slice(0, PARTITIONS - 1)
      : all;
  return html`
    <${Big} figure=${count(all.length || null)} unit=${say("partition in {server}|partitions in {server}", { count: all.length, server: log.kind === "kafka" ? "Kafka" : "Redis" })} />
    <dl class="ends">
      ${shown.length > 0 && html`<div><dt>${say("partition, its end")}</dt><dd>${say("trades waiting")}</dd></div>`}
      ${shown.map(
        ({ partition, last_append_ms: lastMs, lag }) => html`
          <div key=${partition}>
            <dt><b>${partition}</b> ${clock(lastMs, nowMs)}</dt>
            <dd>${count(lag)}</dd>
          </div>
        `,
      )}
      ${shown.length < all.length &&
      html`<div><dt>${say("others")}</dt><dd>${counted(phrase("{count} partition|{count} partitions"), all.length - shown.length)}</dd></div>`}
    </dl>
  `;
}

function JobStage({ pipeline: { jobs } }) {
  const running = jobs.filter((job) => !job.is_retired);
  if (!running.length) return html`<${Big} figure="–" unit=${say("since the cut")} />`;
  const slowest = running.reduce((a, b) => (b.age_ms > a.age_ms ? b : a));
  return html`
    <${Big} figure=${duration(slowest.age_ms)} unit=${say("since the cut")} />
    ${running.map((job) => html`<${Job} key=${job.job} job=${job} />`)}
  `;
}

// The steps of a live window that come after its end: clients wait for these alone.
const AFTER_THE_END = ["read_ms", "collect_ms", "assemble_ms", "publish_ms"];

function Job({ job }) {
  const stages = Object.entries(job.stages ?? {});
  const isWaitedFor = ([name]) => AFTER_THE_END.includes(name);
  const waited = stages.filter(isWaitedFor);
  const others = stages.filter((stage) => !isWaitedFor(stage));
  const facts = [
    [job.job, job.is_active ? say("active") : say("no lease")],
    [say("owner"), job.owner ?? "–"],
    ...(job.last_batch ? [[say("batch"), `${count(job.last_batch.batch)}, ${counted(phrase("{count} window|{count} windows"), job.last_batch.windows)}`]] : []),
    [say("refused"), counted(phrase("{count} trade|{count} trades"), refused(job.total))],
  ];
  return html`
    <${Facts} facts=${facts} />
    ${waited.length > 0 && html`<${Stages} title=${say("waited for")} stages=${waited} />`}
    ${others.length > 0 && html`<${Stages} title=${say("meanwhile")} stages=${others} />`}
  `;
}

// Where the time of the last batch went: each step's share of their sum, which unfolds.
// Steps are called what the job and its metrics call them.
function Stages({ title, stages }) {
  const sum = stages.reduce((total, [, ms]) => total + ms, 0);
  return html`
    <details class="steps">
      <summary>${title} <b>${duration(sum)}</b></summary>
      <dl>
        ${stages.map(
          ([name, ms]) => html`
            <div key=${name}>
              <dt lang="en">${name.slice(0, -"_ms".length).replaceAll("_", " ")}</dt>
              <dd>${duration(ms)}</dd>
              <span class="bar" aria-hidden="true"><i style=${{ width: `${(100 * ms) / (sum || 1)}%` }}></i></span>
            </div>
          `,
        )}
      </dl>
    </details>
  `;
}

function StreamStage({ pipeline: { stream, now_ms: nowMs } }) {
  return html`
    <${Big} figure=${duration(stream.window_age_ms)} unit=${say("since the window")} />
    <${Facts} facts=${[
      [say("window"), clock(stream.window, nowMs)],
      [say("epoch"), stream.epoch ?? "–"],
      [say("offset"), counted(phrase("{count} window|{count} windows"), stream.offset)],
      [say("traded"), counted(phrase("{count} instrument|{count} instruments"), stream.instruments)],
      [say("without a name"), counted(phrase("{count} instrument|{count} instruments"), stream.unlisted)],
      [say("markets, sectors"), counted(phrase("{count} group|{count} groups"), stream.groups)],
      ...(stream.served_market === null ? [] : [[say("served here"), stream.served_market]]),
    ]} />
  `;
}

function GatewayStage({ pipeline: { fanout, ready, started_ms: startedMs, now_ms: nowMs } }) {
  return html`
    <${Big} figure=${duration(fanout.fanout_lag_ms)} unit=${say("to fan out")} />
    <${Facts} facts=${[
      [say("ready"), ready.ready ? say("yes") : say("no")],
      [say("loop lag"), duration(fanout.loop_lag_ms)],
      [say("memory"), bytes(fanout.rss_bytes)],
      [say("since::up"), duration(nowMs - startedMs)],
    ]} />
  `;
}

function ClientsStage({ pipeline: { fanout } }) {
  const { clients, states } = fanout;
  return html`
    <${Big} figure=${count(clients)} unit=${say("client|clients", { count: clients })} />
    <${Facts} facts=${Object.entries(STATES).map(([state, word]) => [say(word), counted(phrase("{count} client|{count} clients"), states[state])])} />
  `;
}
