// The pipeline as it flows: six stages, and what passes between them.

import { refused } from "./books.js";
import { STAGES, flows, isRetired } from "./diagnosis.js";
import { rates } from "./history.js";
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
  const { pipeline, windows, verdict } = known;
  const perSecond = rates(windows, pipeline.stream?.window_ms, pipeline.now_ms);
  const isFlowing = flows({ stages: verdict.stages, pipeline });
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
    log: [count(waiting(pipeline.jobs)), "waiting"],
    job: [rate(perSecond.rows), "rows/s"],
    stream: [duration(pipeline.fanout?.publish_lag_ms), "to publish"],
    gateway: [duration(pipeline.fanout?.fanout_lag_ms), "to fan out"],
  };
  return html`
    <section class="flow greys" aria-labelledby="flow-title">
      <h2 id="flow-title" class="visually-hidden">Pipeline</h2>
      <ol>
        ${STAGES.map((name) => {
          const { level, word } = verdict.stages[name];
          return html`
            <li key=${name} class="stage" data-stage=${name} data-level=${level}>
              <div class="card panel">
                <h3>${TITLES[name]}</h3>
                <${Level} level=${level} word=${word} />
                <${parts[name]} pipeline=${pipeline} perSecond=${perSecond} />
              </div>
              ${links[name] && html`<${Link} link=${links[name]} isFlowing=${isFlowing[name]} />`}
            </li>
          `;
        })}
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
      ["newest", clock(feed?.last_append_ms, nowMs)],
      ["quiet for", duration(feed?.quiet_ms)],
    ]} />
  `;
}

const waiting = (jobs = []) => {
  const lags = jobs
    .filter((job) => !isRetired(job, jobs))
    .flatMap((job) => (job.partitions ?? []).map(({ lag }) => lag))
    .filter((lag) => (lag ?? null) !== null);
  return lags.length ? lags.reduce((a, b) => a + b, 0) : null;
};

// Every partition's end is in the ledger: here are those with most that waits.
function LogStage({ pipeline: { log, jobs, now_ms: nowMs } }) {
  const lags = new Map(
    (jobs ?? []).flatMap((job) => (job.partitions ?? []).map(({ partition, lag }) => [partition, lag])),
  );
  const all = (log?.partitions ?? []).map((one) => ({ ...one, lag: lags.get(one.partition) ?? null }));
  const shown =
    all.length > PARTITIONS
      ? all.toSorted((a, b) => b.lag - a.lag).slice(0, PARTITIONS - 1)
      : all;
  return html`
    <${Big} figure=${count(all.length || null)} unit=${`partition${all.length === 1 ? "" : "s"} in ${log?.kind === "kafka" ? "Kafka" : "Redis"}`} />
    <dl class="ends">
      ${shown.length > 0 && html`<div><dt>partition, its end</dt><dd>waiting</dd></div>`}
      ${shown.map(
        ({ partition, last_append_ms: lastMs, lag }) => html`
          <div key=${partition}>
            <dt><b>${partition}</b> ${clock(lastMs, nowMs)}</dt>
            <dd>${count(lag)}</dd>
          </div>
        `,
      )}
      ${shown.length < all.length &&
      html`<div><dt>others</dt><dd>${count(all.length - shown.length)}</dd></div>`}
    </dl>
  `;
}

function JobStage({ pipeline: { jobs = [], stream } }) {
  const running = jobs.filter((job) => !isRetired(job, jobs));
  if (!running.length) return html`<${Big} figure="–" unit="since the cut" />`;
  const slowest = running.reduce((a, b) => (b.age_ms > a.age_ms ? b : a));
  return html`
    <${Big} figure=${duration(slowest.age_ms)} unit="since the cut" />
    ${running.map((job) => html`<${Job} key=${job.job} job=${job} windowMs=${stream?.window_ms} />`)}
  `;
}

function Job({ job, windowMs }) {
  const stages = Object.entries(job.stages ?? {})
    .filter(([name, ms]) => name.endsWith("_ms") && typeof ms === "number")
    .map(([name, ms]) => [name.slice(0, -3).replaceAll("_", " "), ms]);
  const facts = [
    [job.job, job.is_active ? "active" : "no lease"],
    ["owner", job.owner ?? "–"],
    ...(job.last_batch ? [["batch", `${count(job.last_batch.batch)}, ${plural(job.last_batch.windows, "window")}`]] : []),
    ...(job.total ? [["refused", count(refused(job.total))]] : []),
  ];
  return html`
    <${Facts} facts=${facts} />
    ${stages.length > 0 && html`<${Stages} stages=${stages} windowMs=${windowMs} />`}
  `;
}

// How much of a window each step of the last batch took.
function Stages({ stages, windowMs }) {
  return html`
    <dl class="steps">
      ${stages.map(
        ([name, ms]) => html`
          <div key=${name}>
            <dt>${name}</dt>
            <dd>${duration(ms)}</dd>
            <span class="bar" aria-hidden="true"><i style=${{ width: `${Math.min(100, (100 * ms) / (windowMs || 2_000))}%` }}></i></span>
          </div>
        `,
      )}
    </dl>
  `;
}

function StreamStage({ pipeline: { stream, now_ms: nowMs } }) {
  return html`
    <${Big} figure=${duration(stream?.window_age_ms)} unit="since the window" />
    <${Facts} facts=${[
      ["window", clock(stream?.window, nowMs)],
      ["epoch", stream?.epoch ?? "–"],
      ["offset", count(stream?.offset)],
      ["issues", count(stream?.issues)],
    ]} />
  `;
}

function GatewayStage({ pipeline: { fanout, ready, started_ms: startedMs, now_ms: nowMs } }) {
  return html`
    <${Big} figure=${duration(fanout?.fanout_lag_ms)} unit="to fan out" />
    <${Facts} facts=${[
      ["ready", ready?.ready ? "yes" : "no"],
      ["loop lag", duration(fanout?.loop_lag_ms)],
      ["memory", bytes(fanout?.rss_bytes)],
      ["up", duration(startedMs ? nowMs - startedMs : null)],
    ]} />
  `;
}

const STATES = ["live", "behind", "stuck", "new"];

function ClientsStage({ pipeline: { fanout } }) {
  const { clients, states = {} } = fanout ?? {};
  return html`
    <${Big} figure=${count(clients)} unit=${clients === 1 ? "client" : "clients"} />
    <${Facts} facts=${STATES.map((state) => [state, count(states[state])])} />
  `;
}
