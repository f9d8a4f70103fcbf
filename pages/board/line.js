// What a page knows of its line to the gateway. freshness.js judges it.

import { judge } from "./freshness.js";

// Kinds of a link in which requests are answered, too.
export const CONNECTED = new Set(["live", "stale", "starting"]);

const ARRIVALS = new Set(["snapshot", "update", "heartbeat"]);

export class Line {
  link = { kind: "connecting", text: "" };
  wasLive = false;
  heardMs = null;
  staleSinceMs = null;
  windowMs = 2_000;
  heartbeatMs = 5_000;

  // Takes in a message; returns whether it brings prices, or says that there are none.
  hear(message, clockSkewMs) {
    if (message.type === "welcome") {
      this.windowMs = message.window_ms ?? this.windowMs;
      this.heartbeatMs = message.heartbeat_ms;
    }
    if (message.type === "status") {
      const isStale = message.feed !== "live" && message.since_window != null;
      this.staleSinceMs = isStale ? message.since_window - clockSkewMs : null;
    }
    if (!ARRIVALS.has(message.type)) return false;
    this.heardMs = Date.now();
    this.wasLive ||= message.epoch !== null;
    return true;
  }

  // Returns {kind, sinceMs, reason} as `judge` does.
  judge(retryAtMs) {
    return judge({ ...this, retryAtMs, nowMs: Date.now() });
  }
}
