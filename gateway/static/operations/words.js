// How figures are worded, the same all over the page. Pure.

const NONE = "–";
const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const isMissing = (number) => number === null || number === undefined;
const pad = (number) => String(number).padStart(2, "0");

export function count(number) {
  return isMissing(number) ? NONE : WHOLE.format(number);
}

export function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

// As short as an operator needs it: the longer, the coarser.
export function duration(ms) {
  if (isMissing(ms)) return NONE;
  const seconds = Math.max(ms, 0) / 1000;
  if (seconds < 1) return `${Math.round(Math.max(ms, 0))} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 119.5) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${pad(minutes % 60)} min` : `${Math.floor(hours / 24)} days`;
}

// A time of day by the reader's clock; with the date if it is of another day than now.
export function clock(timeMs, nowMs = timeMs) {
  if (isMissing(timeMs)) return NONE;
  const time = new Date(timeMs);
  const text = [time.getHours(), time.getMinutes(), time.getSeconds()].map(pad).join(":");
  if (time.toDateString() === new Date(nowMs).toDateString()) return text;
  return `${time.getFullYear()}-${pad(time.getMonth() + 1)}-${pad(time.getDate())} ${text}`;
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
