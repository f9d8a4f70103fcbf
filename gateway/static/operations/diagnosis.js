// Which stage is at fault, and what to do: from what /v1/pipeline says. Pure.
//
// A fault is told once, where it is: what merely follows from it is not a finding of its
// own. Every reason for which the gateway is not ready is a finding, or follows from one.

import { CODES } from "./codes.js";
import { KEPT } from "./history.js";

export const STAGES = ["feed", "log", "job", "stream", "gateway", "clients"];

// What follows from a fault by itself.
const FOLLOWS = {
  redis_down: ["unreadable", "job_behind", "ledger_off", "feed_stale", "quiet"],
  unreadable: ["feed_stale"],
  log_away: ["job_behind", "feed_stale", "quiet", "publish_late"],
  job_dead: ["job_behind", "feed_stale", "publish_late"],
  job_behind: ["feed_stale", "publish_late"],
};

// Stages of which nothing can be said while there is a fault elsewhere.
const BLIND = {
  redis_down: { feed: "not known", log: "not known", job: "not known" },
  unreadable: { feed: "not known", log: "not known", job: "not known" },
  log_away: { feed: "not known", job: "waits for the log", stream: "no new window" },
  job_dead: { stream: "no new window" },
  job_behind: { stream: "old windows" },
};

const OLD_WINDOWS = 3;
const LATE_WINDOWS = 3;
const STUCK_SHARE = 1 / 20;
const RANK = { unknown: 0, ok: 1, warn: 2, bad: 3 };

// Returns {level, findings, stages}: the findings with {code, stage, level, what, detail,
// sinceMs, todo}, the root of all first; of every stage {level, word}.
export function diagnose(pipeline, windows = []) {
  const told = [
    ...(pipeline.ready?.reasons ?? []).map((reason) => fromReason(reason, pipeline)),
    ...ofRedis(pipeline),
    ...ofFeed(pipeline),
    ...ofLog(pipeline),
    ...ofJobs(pipeline),
    ...ofLags(pipeline, windows),
    ...ofClients(pipeline),
  ];
  const findings = roots(told).sort(
    (a, b) => RANK[b.level] - RANK[a.level] || order(a.code) - order(b.code),
  );
  return { level: findings[0]?.level ?? "ok", findings, stages: stagesOf(findings, pipeline) };
}

function finding(code, { detail = null, sinceMs = null, job = null, ...other } = {}) {
  return { code, ...CODES[code], detail, sinceMs, job, ...other };
}

// The gateway says since when it has noticed; a window that came last says it better.
function fromReason({ code, since_ms: sinceMs, message }, { stream }) {
  const known = code in CODES ? code : "unknown";
  const lastMs = code === "feed_stale" ? (stream?.window ?? null) : null;
  return finding(known, { sinceMs: lastMs ?? sinceMs, detail: message });
}

// While there is such a problem, nothing is known of log and jobs.
function ofRedis({ problem }) {
  if (!problem) return [];
  return [finding(problem.startsWith("Redis:") ? "redis_down" : "unreadable", { detail: problem })];
}

// Whether that is a fault is for the gateway's setting to say (TICKTHROTTLE_QUIET_S): a
// closed market is quiet, too.
function ofFeed({ feed, stream }) {
  const { quiet_ms: quietMs, last_append_ms: sinceMs } = feed ?? {};
  if (!quietMs || !stream?.window_ms || quietMs <= OLD_WINDOWS * stream.window_ms) return [];
  return [finding("quiet", { level: "warn", sinceMs })];
}

// Where the job goes on, it is only the gateway that cannot ask the log.
function ofLog({ log, jobs = [], stream, problem }) {
  if (!log?.problem || problem) return [];
  const goesOn = jobs.some((job) => job.is_active && !isOld(job, stream));
  if (goesOn) return [finding("log_unseen", { detail: log.problem })];
  // Redis answers, or this would not be known.
  const missing = { what: "There has been no trade log", word: "none", todo: "Start a feed: it makes the log." };
  return [finding("log_away", { detail: log.problem, ...(log.kind === "redis" ? missing : {}) })];
}

const isOld = (job, stream) => job.age_ms > OLD_WINDOWS * (stream?.window_ms ?? Infinity);

function ofJobs({ jobs = [], stream, problem, now_ms: nowMs, started_ms: startedMs }) {
  const found = [];
  if (!jobs.length && !problem) {
    const about = { what: "No throttle job has published", word: "none", sinceMs: startedMs ?? null };
    found.push(finding("job_dead", about));
  }
  for (const job of jobs) {
    const name = jobs.length > 1 ? `The throttle job ${job.job}` : "The throttle job";
    const sinceMs = job.cut_ms ?? null;
    if (!job.is_active && !isRetired(job, jobs)) {
      found.push(finding("job_dead", { what: `${name} has been dead`, sinceMs, job: job.job }));
    } else if (job.is_active && isOld(job, stream)) {
      const detail = `its newest window ended ${Math.round(job.age_ms / 1000)} s ago`;
      const behindMs = nowMs - job.age_ms;
      found.push(
        finding("job_behind", { what: `${name} has been behind`, sinceMs: behindMs, detail, job: job.job }),
      );
    }
    if (job.balanced === false) {
      found.push(finding("ledger_off", { detail: job.problems?.join("; "), job: job.job }));
    }
  }
  return found;
}

// A job under an old name is no fault, as long as others read all of its partitions.
export function isRetired(job, jobs) {
  const partitions = (one) => (one.partitions ?? []).map((each) => each.partition);
  const others = new Set(
    jobs.filter((other) => other !== job && other.is_active).flatMap(partitions),
  );
  return !job.is_active && partitions(job).length > 0 && partitions(job).every((p) => others.has(p));
}

// One late window is no trend.
function ofLags({ stream }, windows) {
  const newest = windows.slice(-LATE_WINDOWS);
  const limitMs = stream?.window_ms;
  if (newest.length < LATE_WINDOWS || !limitMs) return [];
  const found = [];
  for (const [code, field] of [
    ["publish_late", "publish_lag_ms"],
    ["fanout_late", "fanout_lag_ms"],
  ]) {
    const lags = newest.map((window) => window[field]);
    if (lags.every((lag) => lag !== null && lag !== undefined && lag > limitMs)) {
      const detail = `the newest one ${(lags.at(-1) / 1000).toFixed(1)} s after its end`;
      found.push(finding(code, { detail, sinceMs: newest[0].window }));
    }
  }
  // What is published late reaches everybody late.
  return found.slice(0, 1);
}

function ofClients({ fanout }) {
  const { clients = 0, states = {} } = fanout ?? {};
  if (!states.stuck || states.stuck <= clients * STUCK_SHARE) return [];
  return [finding("clients_stuck", { detail: `${states.stuck} of ${clients}` })];
}

// Leaves what follows from nothing else, and tells nothing twice.
function roots(told) {
  const codes = new Set(told.map((one) => one.code));
  const isFollowed = (code) => [...codes].some((cause) => FOLLOWS[cause]?.includes(code));
  const kept = new Map();
  for (const one of told.filter(({ code }) => !isFollowed(code))) {
    // The gateway's word for a code comes first, a job's own finding is the more exact.
    const key = one.job === null ? one.code : `${one.code} ${one.job}`;
    const before = kept.get(key) ?? kept.get(one.code);
    if (before !== undefined && before.job === null) kept.delete(one.code);
    kept.set(key, before === undefined ? one : together(before, one));
  }
  return [...kept.values()];
}

function together(before, one) {
  return {
    ...one,
    level: RANK[before.level] > RANK[one.level] ? before.level : one.level,
    detail: before.detail ?? one.detail,
    sinceMs: one.sinceMs ?? before.sinceMs,
  };
}

const order = (code) => Object.keys(CODES).indexOf(code);

function stagesOf(findings, pipeline) {
  const stages = Object.fromEntries(STAGES.map((name) => [name, { level: "ok", word: "well" }]));
  for (const { code } of findings) {
    for (const [name, word] of Object.entries(BLIND[code] ?? {})) {
      // One of several jobs may be dead while the others publish.
      if (name === "stream" && pipeline.stream?.is_live !== false) continue;
      stages[name] = { level: "unknown", word };
    }
  }
  // With Kafka the log is not in Redis, and says itself whether it is well.
  if (pipeline.log?.kind === "kafka" && !pipeline.log.problem) {
    stages.log = { level: "ok", word: "well" };
  }
  if (pipeline.stream?.is_live === false) stages.gateway = { level: "warn", word: "serves old prices" };
  for (const { stage, level, word } of findings) {
    const before = stages[stage].level;
    if (RANK[level] > RANK[before] || stages[stage].word === "serves old prices") {
      stages[stage] = { level, word };
    }
  }
  return stages;
}

// Whether anything passes from a stage to the next one.
export function flows({ stages, pipeline }) {
  const isWell = (name) => ["ok", "warn"].includes(stages[name].level);
  const isActive = (pipeline.jobs ?? []).some((job) => job.is_active);
  const isLive = pipeline.stream?.is_live !== false;
  return {
    feed: isWell("feed") && stages.log.level !== "bad",
    log: isWell("log") && isActive,
    job: isActive && isLive,
    stream: isLive && stages.stream.level !== "bad",
    gateway: isLive,
  };
}

// Since when all has been well: {sinceMs, isExact}. What is known is the gateway's start,
// its newest windows without a hole or a late one, and what the page has seen itself. Where
// there were more windows than are kept, it may have been well before (isExact is false).
export function wellSince(pipeline, windows, seenMs = null) {
  const limitMs = pipeline.stream?.window_ms ?? Infinity;
  const startedMs = pipeline.started_ms ?? pipeline.now_ms;
  const firstMs = windows[0]?.window ?? startedMs;
  let isExact = windows.length < KEPT;
  let sinceMs = isExact && firstMs - startedMs <= 2 * limitMs ? startedMs : firstMs;
  windows.forEach(({ window, publish_lag_ms: lagMs }, number) => {
    const before = windows[number - 1]?.window ?? window;
    if (lagMs > OLD_WINDOWS * limitMs || window - before > OLD_WINDOWS * limitMs) {
      [sinceMs, isExact] = [window, true];
    }
  });
  const hasSeen = seenMs !== null && seenMs > sinceMs;
  return hasSeen ? { sinceMs: seenMs, isExact: true } : { sinceMs, isExact };
}
