// The verdict on all that the page knows: the first thing that is read. Pure.

import { CODES } from "./codes.js";
import { diagnose, wellSince } from "./diagnosis.js";

const UNDECIDED = {
  starting: "Asking the gateway",
  denied: "The gateway asks for an operator's token",
};
const SILENCES = {
  lost: CODES.gateway_silent.what,
  failing: "The gateway has not said how things are",
};

// Returns {level, text, sinceMs, isExact, findings, stages, wellFromMs}: `text` says all
// but since when, `isExact` whether it may have been so before. `before` is the verdict
// before this one. All times are by the server's clock.
export function verdict(known, nowMs, before = null) {
  const { contact, pipeline, windows } = known;
  const diagnosis = pipeline && diagnose(pipeline, windows);
  const base = {
    level: "unknown",
    text: UNDECIDED[contact.state],
    sinceMs: null,
    isExact: true,
    findings: [],
    stages: diagnosis?.stages ?? null,
    wellFromMs: before?.wellFromMs ?? null,
  };
  if (contact.state in UNDECIDED) return base;
  if (contact.state in SILENCES) return { ...base, ...silence(known) };
  const { level, findings } = diagnosis;
  if (level !== "ok") return { ...base, level, ...worst(withTimes(findings, before, nowMs)) };
  // Only what was seen to end is known to have ended: not what passed unseen.
  const hasEnded = before?.level === "bad" || before?.level === "warn";
  const wellFromMs = hasEnded ? nowMs : base.wellFromMs;
  const since = wellSince(pipeline, windows, wellFromMs);
  return { ...base, level, text: "All is well", wellFromMs, ...since };
}

function silence({ answeredMs, contact, skewMs }) {
  const finding = {
    code: "gateway_silent",
    ...CODES.gateway_silent,
    what: SILENCES[contact.state],
    sinceMs: (answeredMs ?? contact.sinceMs) + skewMs,
    detail: contact.message,
    job: null,
  };
  return { level: finding.level, ...worst([finding]) };
}

const worst = (findings) => ({ text: findings[0].what, sinceMs: findings[0].sinceMs, findings });

// Where the gateway does not say since when, it is since the page has seen it.
function withTimes(findings, before, nowMs) {
  return findings.map((one) => ({ ...one, sinceMs: one.sinceMs ?? seen(one, before) ?? nowMs }));
}

function seen({ code, job }, before) {
  return before?.findings.find((one) => one.code === code && one.job === job)?.sinceMs;
}
