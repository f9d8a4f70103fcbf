// The pipeline as it flows: six stages, and what passes between them.

import { refused } from "./books.js";
import { feedRate, rates } from "./history.js";
import { html } from "./html.js";
import { Level } from "./level.js";
import { bytes, clock, count, duration, plural, rate } from "./words.js";

const PARTITIONS = 4;

const TITLES = {
  feed: "Feeds",
  log: "Trade log",
  job: "Throttle",
  stream: "Redis stream",
  gateway: "Gateway",
  clients: "Browsers",
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
    feed: [rate(perSecond.trades), "trades/s"],
    log: [count(waiting(pipeline.jobs)), "trades waiting"],
    job: [rate(perSecond.rows), "rows/s"],
    stream: [duration(pipeline.fanout.publish_lag_ms), "to publish"],
    gateway: [duration(pipeline.fanout.fanout_lag_ms), "to fan out"],
  };
  return html`
    <section class="flow greys" aria-labelledby="flow-title">
      <h2 id="flow-title" class="visually-hidden">Pipeline</h2>
      <ol>
        ${Object.entries(pipeline.diagnosis.stages).map(
          ([name, { level, word, is_flowing: isFlowing }]) => html`
            <li key=${name} class="stage" data-stage=${name} data-level=${level}>
              <div class="card panel">
                <h3>${TITLES[name]}</h3>
                <${Level} level=${level} word=${word} />
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

const Big = ({ figure, unit }) => html`<p class="big"><b>${figure}</b> <span>${unit}</span></p>`;

const Facts = ({ facts }) => html`
  <dl>
    ${facts.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>
`;

function FeedStage({ pipeline: { feed, now_ms: nowMs }, perSecond }) {
  return html`
    <${Big} figure=${rate(perSecond.trades)} unit="trades/s" />
    <${Facts} facts=${[
      ["newest", clock(feed.last_append_ms, nowMs)],
      ["quiet for", duration(feed.quiet_ms)],
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
    <${Big} figure=${count(all.length || null)} unit=${`partition${all.length === 1 ? "" : "s"} in ${log.kind === "kafka" ? "Kafka" : "Redis"}`} />
    <dl class="ends">
      ${shown.length > 0 && html`<div><dt>partition, its end</dt><dd>trades waiting</dd></div>`}
      ${shown.map(
        ({ partition, last_append_ms: lastMs, lag }) => html`
          <div key=${partition}>
            <dt><b>${partition}</b> ${clock(lastMs, nowMs)}</dt>
            <dd>${count(lag)}</dd>
          </div>
        `,
      )}
      ${shown.length < all.length &&
      html`<div><dt>others</dt><dd>${plural(all.length - shown.length, "partition")}</dd></div>`}
    </dl>
  `;
}

function JobStage({ pipeline: { jobs } }) {
  const running = jobs.filter((job) => !job.is_retired);
  if (!running.length) return html`<${Big} figure="–" unit="since the cut" />`;
  const slowest = running.reduce((a, b) => (b.age_ms > a.age_ms ? b : a));
  return html`
    <${Big} figure=${duration(slowest.age_ms)} unit="since the cut" />
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
    [job.job, job.is_active ? "active" : "no lease"],
    ["owner", job.owner ?? "–"],
    ...(job.last_batch ? [["batch", `${count(job.last_batch.batch)}, ${plural(job.last_batch.windows, "window")}`]] : []),
    ["refused", plural(refused(job.total), "trade")],
  ];
  return html`
    <${Facts} facts=${facts} />
    ${waited.length > 0 && html`<${Stages} title="waited for" stages=${waited} />`}
    ${others.length > 0 && html`<${Stages} title="meanwhile" stages=${others} />`}
  `;
}

// Where the time of the last batch went: each step's share of their sum.
function Stages({ title, stages }) {
  const sum = stages.reduce((total, [, ms]) => total + ms, 0);
  return html`
    <dl class="steps">
      <div class="sum"><dt>${title}</dt><dd>${duration(sum)}</dd></div>
      ${stages.map(
        ([name, ms]) => html`
          <div key=${name}>
            <dt>${name.slice(0, -"_ms".length).replaceAll("_", " ")}</dt>
            <dd>${duration(ms)}</dd>
            <span class="bar" aria-hidden="true"><i style=${{ width: `${(100 * ms) / (sum || 1)}%` }}></i></span>
          </div>
        `,
      )}
    </dl>
  `;
}

function StreamStage({ pipeline: { stream, now_ms: nowMs } }) {
  return html`
    <${Big} figure=${duration(stream.window_age_ms)} unit="since the window" />
    <${Facts} facts=${[
      ["window", clock(stream.window, nowMs)],
      ["epoch", stream.epoch ?? "–"],
      ["offset", plural(stream.offset, "window")],
      ["traded", plural(stream.issues, "issue")],
      ["without a name", plural(stream.unlisted, "issue")],
      ["markets, sectors", plural(stream.groups, "group")],
      ...(stream.served_market === null ? [] : [["served here", stream.served_market]]),
    ]} />
  `;
}

function GatewayStage({ pipeline: { fanout, ready, started_ms: startedMs, now_ms: nowMs } }) {
  return html`
    <${Big} figure=${duration(fanout.fanout_lag_ms)} unit="to fan out" />
    <${Facts} facts=${[
      ["ready", ready.ready ? "yes" : "no"],
      ["loop lag", duration(fanout.loop_lag_ms)],
      ["memory", bytes(fanout.rss_bytes)],
      ["up", duration(nowMs - startedMs)],
    ]} />
  `;
}

const STATES = ["live", "behind", "stuck", "new"];

function ClientsStage({ pipeline: { fanout } }) {
  const { clients, states } = fanout;
  return html`
    <${Big} figure=${count(clients)} unit=${clients === 1 ? "client" : "clients"} />
    <${Facts} facts=${STATES.map((state) => [state, plural(states[state], "client")])} />
  `;
}
