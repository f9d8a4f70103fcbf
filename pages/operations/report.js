// What the page says, as a text that can be sent to somebody. Pure. It is in English whatever
// the page speaks: it has the words of the log lines and of the documents.

import { bytes, count } from "./words.js";

const isMissing = (value) => value === null || value === undefined;
const iso = (ms) => (isMissing(ms) ? "–" : new Date(ms).toISOString());
const lag = (ms) => (isMissing(ms) ? "–" : `${count(ms)} ms`);

export function report({ verdict, pipeline, incidents, others }) {
  const { stream, fanout, jobs, archives = [], analytics = [], log } = pipeline;
  const lines = [
    `tickthrottle ${pipeline.version}, ${iso(pipeline.now_ms)}`,
    `Verdict: ${verdict.text}${verdict.sinceMs === null ? "" : ` since ${iso(verdict.sinceMs)}`}`,
    ...verdict.findings.map(
      (one) => `- ${one.level} ${one.code}: ${one.text}${one.detail ? ` (${one.detail})` : ""}. To do: ${one.todo}`,
    ),
    `Log: ${log.kind}, ${count(log.partitions.length)} partitions${log.problem ? `, ${log.problem}` : ""}`,
    ...jobs.map(
      (job) =>
        `Job ${job.job}: ${job.is_active ? "active" : "not active"}, cut ${iso(job.cut_ms)}, ` +
        `${count(job.windows)} windows, books ${job.balanced ? "balance" : job.problems.join("; ")}`,
    ),
    `Stream: window ${iso(stream.window)}, offset ${stream.offset ?? "–"}, epoch ${stream.epoch ?? "–"}, ` +
      `${count(stream.instruments)} instruments`,
    `Clients: ${count(fanout.clients)} (${Object.entries(fanout.states).map(([state, number]) => `${number} ${state}`).join(", ")}), ` +
      `published after ${lag(fanout.publish_lag_ms)}, with the last after ${lag(fanout.fanout_lag_ms)}, ` +
      `${bytes(fanout.rss_bytes)}`,
    ...(others?.data ?? []).map(
      (one) => `Gateway ${one.gateway}: ${one.problem ?? `${count(one.count)} clients`}`,
    ),
    ...archives.map((one) => `Archive ${one.name}: up to ${iso(one.window)}, ${count(one.gaps + one.bar_gaps)} gaps${one.problem ? `, ${one.problem}` : ""}`),
    ...analytics.map((one) => `Analytics ${one.product}: ${one.window ? `up to ${iso(one.window)}` : "nothing yet"}${one.problems.map((text) => `, ${text}`).join("")}`),
    ...(incidents?.data ?? []).slice(0, 10).map(
      (one) =>
        `Incident ${one.code}: ${iso(one.since_ms)} to ${one.until_ms === null ? "now" : iso(one.until_ms)}${one.note ? `: ${one.note}` : ""}`,
    ),
  ];
  return `${lines.join("\n")}\n`;
}
