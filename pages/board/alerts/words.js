// Alerts in words. Pure.

import { phrase, say } from "../../language.js";
import { priceText, zonedText } from "../format.js";

// What an alert waits for, and what it says when that has come.
const WAITS = {
  price: {
    up: phrase("rises to {value}"),
    down: phrase("falls to {value}"),
    either: phrase("reaches {value}"),
  },
  change: {
    up: phrase("rises {value} % or more"),
    down: phrase("falls {value} % or more"),
    either: phrase("moves {value} % or more"),
  },
};
const TOLD = {
  price: {
    up: phrase("{name} has risen to {value}: {price}"),
    down: phrase("{name} has fallen to {value}: {price}"),
    either: phrase("{name} has reached {value}: {price}"),
  },
  change: {
    up: phrase("{name} is {value} % or more above its previous close: {price}"),
    down: phrase("{name} is {value} % or more below its previous close: {price}"),
    either: phrase("{name} is {value} % or more from its previous close: {price}"),
  },
};

export function waitsText({ kind, way, value }) {
  if (kind === "burst") return say("has a burst of trading");
  return say(WAITS[kind][way], { value: priceText(value) });
}

export function stateText({ isOnce, isDone, toldMs }) {
  if (isDone) return say("told at {time}", { time: zonedText(toldMs ?? 0) });
  const often = isOnce ? say("once") : say("each time");
  return toldMs === null ? often : `${often}, ${say("last told at {time}", { time: zonedText(toldMs) })}`;
}

export function toldText({ kind, way, value, toldPrice }, name) {
  if (kind === "burst") return say("{name}: a burst of trading", { name });
  return say(TOLD[kind][way], { name, value: priceText(value), price: priceText(toldPrice ?? "–") });
}
