// How figures are worded, the same all over the page. Pure.

import { clockText, countText, dateText } from "../board/format.js";
import { say } from "../language.js";

const NONE = "–";
const isMissing = (number) => number === null || number === undefined;
const pad = (number) => String(number).padStart(2, "0");

export function count(number) {
  return isMissing(number) ? NONE : countText(Math.round(number));
}

// As short as an operator needs it: the longer, the coarser.
export function duration(ms) {
  if (isMissing(ms)) return NONE;
  const seconds = Math.max(ms, 0) / 1000;
  if (seconds < 1) return `${Math.round(Math.max(ms, 0))} ms`;
  if (seconds < 9.95) return say("{seconds} s", { seconds: seconds.toFixed(1) });
  if (seconds < 119.5) return say("{seconds} s", { seconds: Math.round(seconds) });
  const minutes = Math.round(seconds / 60);
  if (minutes < 120) return say("{minutes} min", { minutes });
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return say("{hours} h {minutes} min", { hours, minutes: pad(minutes % 60) });
  return say("{days} days", { days: Math.floor(hours / 24) });
}

export const ago = (ms) => say("{time} ago", { time: duration(ms) });

// A time of day, with the date if it is of another day than now.
export function clock(timeMs, nowMs = timeMs) {
  if (isMissing(timeMs)) return NONE;
  const date = dateText(timeMs);
  return date === dateText(nowMs) ? clockText(timeMs) : `${date} ${clockText(timeMs)}`;
}

export function bytes(number) {
  if (isMissing(number)) return NONE;
  if (number < 1024) return `${number} B`;
  const units = ["KiB", "MiB", "GiB"];
  let size = number / 1024;
  while (size >= 999.5 && units.length > 1) {
    size /= 1024;
    units.shift();
  }
  return `${size < 9.95 ? size.toFixed(1) : Math.round(size)} ${units[0]}`;
}

export function rate(perSecond) {
  if (isMissing(perSecond)) return NONE;
  return perSecond < 9.95 && perSecond > 0 ? perSecond.toFixed(1) : count(perSecond);
}
