// What the page knows, kept up to date by asking the gateway.

import { ask, complaint } from "./api.js";
import { KEPT, append, countLog, missing } from "./history.js";
import { poll } from "../poll.js";

const EVERY_MS = 2_000;
const LINES = 20;

// `skewMs` is the server's clock less this one. Fields of `contact`: state is starting, ok,
// lost (no answer), failing (an answer that helps nobody) or denied (a token is asked for);
// since when, and in which words.
export const UNKNOWN = {
  contact: { state: "starting", sinceMs: null, message: null },
  answeredMs: null,
  skewMs: 0,
  pipeline: null,
  windows: [],
  logCounts: [],
  incidents: null,
  clients: null,
  others: null,
  letters: null,
  settings: null,
  complaints: {},
  wantedState: "",
  wantedReason: "",
};

// Calls `show(known)` after every round. Returns {known, change, now}.
export function watch(show) {
  let known = UNKNOWN;
  const put = (part) => {
    known = { ...known, ...part };
    show(known);
  };

  async function round() {
    const pipeline = await ask("v1/pipeline");
    if (!pipeline.isOk) return put({ contact: contactAfter(known.contact, pipeline) });
    const asked = questions(known, pipeline.body);
    put({
      pipeline: pipeline.body,
      logCounts: countLog(known.logCounts, pipeline.body),
      answeredMs: Date.now(),
      skewMs: pipeline.body.now_ms - Date.now(),
      contact: { state: "ok", sinceMs: null, message: null },
    });
    const answers = await Promise.all(asked.map(answered));
    put({
      ...Object.assign({}, ...answers.map((answer) => answer.values)),
      complaints: Object.assign({}, ...answers.map((answer) => answer.complaints)),
    });
  }

  const { now } = poll(round, EVERY_MS);
  return {
    now,
    known: () => known,
    change: (part) => {
      put(part);
      now();
    },
  };
}

// Since when it is so is remembered for as long as it is so.
export function contactAfter(before, answer, nowMs = Date.now()) {
  const state = answer.status === null ? "lost" : answer.status === 401 ? "denied" : "failing";
  const message = state === "lost" ? null : complaint(answer);
  const sinceMs = before.state === state ? before.sinceMs : nowMs;
  return { state, sinceMs, message };
}

function questions(known, pipeline) {
  const { window, window_ms: windowMs } = pipeline.stream ?? {};
  const limit = missing(known.windows, window, windowMs, KEPT);
  const byState = known.wantedState ? `&state=${encodeURIComponent(known.wantedState)}` : "";
  const byReason = known.wantedReason ? `&reason=${encodeURIComponent(known.wantedReason)}` : "";
  // What cannot change while the gateway runs is asked for once.
  const hasChanged = !isSameStart(known.pipeline, pipeline);
  const once = (isKnown, question) => (hasChanged || !isKnown ? [question] : []);
  return [
    {
      name: "windows",
      path: `v1/pipeline/windows?limit=${limit}`,
      take: (body) => ({ windows: append(known.windows, body.data, KEPT) }),
    },
    { name: "incidents", path: "v1/incidents", take: (body) => ({ incidents: body }) },
    {
      name: "clients",
      path: `v1/clients?limit=${LINES}${byState}`,
      take: (body) => ({ clients: body }),
    },
    // Where there are no others, there will be none.
    ...once(known.others?.count === 0, {
      name: "others",
      path: `v1/other-gateways${byState.replace("&", "?")}`,
      take: (body) => ({ others: body }),
    }),
    {
      name: "letters",
      path: `v1/dead-letters?limit=${LINES}${byReason}`,
      take: (body) => ({ letters: body }),
    },
    ...once(known.settings, { name: "settings", path: "v1/settings", take: (body) => ({ settings: body }) }),
  ];
}

const isSameStart = (before, now) => before?.started_ms === now.started_ms;

// One question that is not answered in time costs none of the other answers.
async function answered({ name, path, take }) {
  const answer = await ask(path);
  return answer.isOk && answer.body !== null
    ? { values: take(answer.body), complaints: {} }
    : { values: {}, complaints: { [name]: complaint(answer) } };
}
