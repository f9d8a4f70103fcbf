// Times of day as they are written: by the Korean exchange's clock (KST) or in the zone of
// the browser. Pure, but for the one zone that a page has. Nobody sees from a time which
// of the two it is: whoever shows one says zoneText() beside it, once.

import { language, phrase, say } from "./language.js";

export const ZONES = { local: phrase("local"), kst: "KST" };

const KST_MS = 9 * 3_600_000; // Korea has no summer time
const KST = "Asia/Seoul";

let current = "local";

export const zone = () => current;

export function setZone(name) {
  current = Object.hasOwn(ZONES, name) ? name : "local";
}

export const zoneText = () => (current === "kst" ? ZONES.kst : say(ZONES.local));

const pad = (number, width = 2) => String(number).padStart(width, "0");

// "09:00:02", or "09:00:02.250"
export function clockText(timeMs, { withMilliseconds = false } = {}) {
  if (current === "kst") return new Date(timeMs + KST_MS).toISOString().slice(11, withMilliseconds ? 23 : 19);
  const time = new Date(timeMs);
  const text = [time.getHours(), time.getMinutes(), time.getSeconds()].map((part) => pad(part)).join(":");
  return withMilliseconds ? `${text}.${pad(time.getMilliseconds(), 3)}` : text;
}

// "2026-11-24"
export function dateText(timeMs) {
  if (current === "kst") return new Date(timeMs + KST_MS).toISOString().slice(0, 10);
  const time = new Date(timeMs);
  return `${time.getFullYear()}-${pad(time.getMonth() + 1)}-${pad(time.getDate())}`;
}

// The same with its zone, where it stands alone.
export const zonedText = (timeMs) => `${clockText(timeMs)} ${zoneText()}`;

// "15:30 local"
export const zonedMinuteText = (timeMs) => `${clockText(timeMs).slice(0, 5)} ${zoneText()}`;

// A format as the language and the zone of the page want it. Each is made once: making one costs
// more than many texts of it.
const formats = new Map();

function formatOf(name, options) {
  const key = `${name} ${language()} ${current}`;
  if (!formats.has(key)) {
    const timeZone = current === "kst" ? KST : undefined;
    formats.set(key, new Intl.DateTimeFormat(language() === "ko" ? "ko-KR" : "en-GB", { ...options, timeZone }));
  }
  return formats.get(key);
}

// "Mon 09:00 local", with the date if that Monday is not the next one after `nowMs`.
export function dayClockText(timeMs, nowMs) {
  const isFar = timeMs - nowMs > 6 * 86_400_000;
  const date = isFar ? { day: "numeric", month: "short" } : {};
  const form = { weekday: "short", ...date, hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  return `${formatOf(isFar ? "date" : "weekday", form).format(timeMs).replace(/[(),]/g, "")} ${zoneText()}`;
}

// All there is to a moment, for a title: date, time and zone as the language writes them.
export const momentText = (timeMs) => formatOf("moment", { dateStyle: "medium", timeStyle: "long" }).format(timeMs);
