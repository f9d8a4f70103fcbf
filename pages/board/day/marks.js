// What stands in the way of trading an instrument, as marks beside its name: mostly nothing.

import { phrase, say } from "../../language.js";
import { statusMarks } from "./statuses.js";

const LIMITS = {
  upper: { text: phrase("limit ▲"), kind: "up", title: phrase("at the day's upper limit") },
  lower: { text: phrase("limit ▼"), kind: "down", title: phrase("at the day's lower limit") },
};
const HALTED = { text: phrase("halted"), kind: "halted", title: phrase("not traded for now, says the instrument table") };
const CORRECTED = {
  text: phrase("corrected"),
  kind: "corrected",
  title: phrase("a trade was taken back or corrected: this is the newest one that stands"),
};

// Returns [{text, kind: its class, title}] of a row.
export function marksOf(row) {
  const isLimitTold = row.statuses.some(({ status }) => status.startsWith("limit"));
  const own = [row.isHalted && HALTED, row.isCorrected && CORRECTED, !isLimitTold && LIMITS[row.limit]];
  const said = ({ text, kind, title }) => ({ text: say(text), kind, title: say(title) });
  return [...statusMarks(row), ...own.filter(Boolean).map(said)];
}
