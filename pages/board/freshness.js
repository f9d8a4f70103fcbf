// Whether what is shown is true now, and since when it is not. Pure.

import { phrase, say } from "../language.js";

const SILENT_WINDOWS = 3;
const SLACK_MS = 1_500;

// How long may nothing come: quiet windows are told by heartbeats only.
export function silenceMs({ windowMs, heartbeatMs }) {
  return Math.max(SILENT_WINDOWS * windowMs, heartbeatMs) + SLACK_MS;
}

const CLOSED = {
  4401: phrase("The token has expired."),
  4501: phrase("The gateway asks for a token, or refused this one."),
};

const CLOSED_BY = phrase("The gateway has closed the connection ({code}).");

// What the gateway says of itself, as this page says it; anything else stays as it is.
const SAID = [
  [/^no window for ([\d.]+) s$/, phrase("No window for {figure} s.")],
  [/^no window yet$/, phrase("No window yet.")],
  [/^nothing came for ([\d.]+) s$/, phrase("Nothing has come for {figure} s.")],
  [/^the throttle job is starting$/, phrase("The throttle job is starting.")],
];

// Takes what is known of the line:
//   link        {kind, text} as TickClient tells it
//   wasLive     whether prices have ever come
//   heardMs     when a window or heartbeat last came, null before the first
//   staleSinceMs  end of the last window before the gateway said stale, null while live
//   retryAtMs   when the next try is due, null while none is waited for
//   nowMs       all by this browser's clock
// Returns {kind, sinceMs, reason}. A line that is being made again is still lost.
export function judge(line) {
  const { link, wasLive, heardMs, staleSinceMs, retryAtMs, nowMs } = line;
  const since = { sinceMs: heardMs };
  switch (link.kind) {
    case "closed": {
      const code = /\d+/.exec(link.text)?.[0];
      return { kind: "closed", ...since, reason: say(CLOSED[code] ?? CLOSED_BY, { code }) };
    }
    case "offline":
      return { kind: "offline", ...since, reason: retryText(retryAtMs - nowMs) };
    case "connecting":
      if (!wasLive) return { kind: "connecting", sinceMs: null, reason: "" };
      return { kind: "offline", ...since, reason: say("Connection lost, reconnecting.") };
    case "stale":
    case "starting": {
      return { kind: link.kind, sinceMs: staleSinceMs ?? heardMs, reason: sentence(link.text) };
    }
  }
  if (heardMs !== null && nowMs - heardMs > silenceMs(line)) {
    return { kind: "stale", ...since, reason: say("Nothing comes from the gateway.") };
  }
  return { kind: "live", sinceMs: null, reason: "" };
}

function retryText(leftMs) {
  if (leftMs <= 0) return say("Connection lost, reconnecting.");
  return say("Connection lost, next try in {seconds} s.", { seconds: Math.ceil(leftMs / 1000) });
}

function sentence(text) {
  for (const [form, words] of SAID) {
    const found = form.exec(text);
    if (found !== null) return say(words, { figure: found[1] });
  }
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}
