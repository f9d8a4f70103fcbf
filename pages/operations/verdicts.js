// The verdict: what the gateway says is wrong, or that it says nothing. Pure.
//
// What is wrong is judged by the gateway (gateway/health/findings.py). The page knows by
// itself only that the gateway does not answer, and since when it has seen a finding. All
// texts are English here; what draws them says them (gateway_words.js).

import { phrase } from "../language.js";

const UNDECIDED = {
  starting: phrase("Asking the gateway"),
  denied: phrase("The gateway asks for an operator's token"),
};
const SILENCES = {
  lost: phrase("The gateway has not answered"),
  failing: phrase("The gateway has not said how things are"),
};
const SILENT = {
  code: "gateway_silent",
  level: "bad",
  todo: phrase("See whether it runs, and start it again: tickthrottle gateway. The page below shows its last answer."),
  job: null,
};

// Returns {level, text, sinceMs, isExact, findings, wellFromMs}: `text` says all but since
// when, `isExact` whether it may have been so before. `before` is the verdict before this
// one. All times are by the server's clock.
export function verdict(known, nowMs, before = null) {
  const { contact, pipeline } = known;
  const base = {
    level: "unknown",
    text: UNDECIDED[contact.state],
    sinceMs: null,
    isExact: true,
    findings: [],
    wellFromMs: before?.wellFromMs ?? null,
  };
  if (contact.state in UNDECIDED) return base;
  if (contact.state in SILENCES) return { ...base, ...worst([silence(known)]) };
  const { level, findings, well_since_ms: sinceMs, is_well_since_exact: isExact } = pipeline.diagnosis;
  if (level !== "ok") return { ...base, ...worst(findings.map((one) => withTime(one, before, nowMs))) };
  // Only what was seen to end is known to have ended: not what passed unseen.
  const hasEnded = before?.level === "bad" || before?.level === "warn";
  const wellFromMs = hasEnded ? nowMs : base.wellFromMs;
  const well = { ...base, level, text: phrase("All is well"), wellFromMs };
  return wellFromMs > sinceMs ? { ...well, sinceMs: wellFromMs } : { ...well, sinceMs, isExact };
}

function silence({ answeredMs, contact, skewMs }) {
  const sinceMs = (answeredMs ?? contact.sinceMs) + skewMs;
  return { ...SILENT, text: SILENCES[contact.state], since_ms: sinceMs, detail: contact.message };
}

function worst(findings) {
  const [{ level, text, since_ms: sinceMs }] = findings;
  return { level, text, sinceMs, findings };
}

// Where the gateway does not say since when, it is since the page has seen it.
function withTime(finding, before, nowMs) {
  const isSame = ({ code, job }) => code === finding.code && job === finding.job;
  const seenMs = before?.findings.find(isSame)?.since_ms;
  return { ...finding, since_ms: finding.since_ms ?? seenMs ?? nowMs };
}
