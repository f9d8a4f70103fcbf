// How figures are worded: as report/words.py words them for the terminal, a test holds
// both together. Pure.

const NONE = "–";
const isKnown = (number) => number !== null && number !== undefined;
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0, roundingMode: "halfEven" });
const padded = (number) => String(number).padStart(2, "0");

const count = (number) => (isKnown(number) ? whole.format(number) : NONE);
const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
const cores = (share) => (isKnown(share) ? `${whole.format(share * 100)}%` : NONE);

function duration(ms) {
  if (!isKnown(ms)) return NONE;
  if (ms < 9.95) return ms > 0 ? `${ms.toFixed(1)} ms` : "0 ms";
  if (ms < 9_995) return `${whole.format(ms)} ms`;
  if (ms < 119_500) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60];
  return hours ? `${hours} h ${padded(minutes)} min` : `${minutes} min ${padded(seconds % 60)} s`;
}

function size(bytes) {
  if (!isKnown(bytes)) return NONE;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  while (bytes >= 999.5 && units.length > 1) {
    bytes /= 1_024;
    units.shift();
  }
  return `${bytes < 9.95 && units[0] !== "B" ? bytes.toFixed(1) : whole.format(bytes)} ${units[0]}`;
}

function ratio(number) {
  if (!isKnown(number)) return NONE;
  return number < 99.5 ? number.toFixed(1) : whole.format(number);
}

function rate(perSecond) {
  const isSmall = isKnown(perSecond) && perSecond > 0 && perSecond < 9.95 && !Number.isInteger(perSecond);
  return isSmall ? perSecond.toFixed(1) : count(perSecond);
}

// A moment of the run: 5:02 after the measured time began.
function elapsed(ms) {
  const seconds = Math.floor(Math.abs(ms) / 1_000);
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60];
  return `${ms < 0 ? "-" : ""}${hours ? `${hours}:${padded(minutes)}` : minutes}:${padded(seconds % 60)}`;
}

const moment = (ms) => `${new Date(ms).toISOString().slice(0, 19).replace("T", " ")} UTC`;

// Numbers stay on one line with their units.
const prose = (text) => text.replace(/(\d) (?=(?:ms|s|min|h|B|[KMGT]iB)\b)/g, "$1\u00a0");
