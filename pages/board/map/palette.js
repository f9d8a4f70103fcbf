// The colours of the map: how far a change goes, in steps, and what can be read on it.
// Pure: a colour is [red, green, blue], 0 to 255.

import { say } from "../../language.js";

const BOUNDS = [0.5, 1, 2, 3, 5]; // per cent at which the next step begins
const WEIGHTS = [0, 0.3, 0.44, 0.58, 0.72, 0.86, 1]; // how much of the colour a step has
export const MOST_STEP = BOUNDS.length + 1;
const [BLACK, WHITE] = [
  [0, 0, 0],
  [255, 255, 255],
];

// -6 to 6; 0 for no change.
export function stepOf({ ratio }) {
  if (!ratio) return 0;
  const percent = Math.abs(ratio) * 100;
  let steps = 1;
  while (percent >= BOUNDS[steps - 1]) steps += 1;
  return ratio > 0 ? steps : -steps;
}

// "rgb(20, 24, 32)" -> [20, 24, 32]
export const rgbOf = (text) => text.match(/[\d.]+/g).slice(0, 3).map(Number);

export const textOf = (rgb) => `rgb(${rgb.map(Math.round).join(", ")})`;

const mixed = (from, to, weight) => from.map((part, place) => part + (to[place] - part) * weight);

function luminance(rgb) {
  const [red, green, blue] = rgb.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

// The contrast of two colours as WCAG has it, 1 to 21.
export function contrast(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

// Black or white: one of the two has a contrast of 4.5 at least on any colour.
export const inkOn = (rgb) => (contrast(rgb, WHITE) >= contrast(rgb, BLACK) ? WHITE : BLACK);

// Step -> {back, ink}, as text, from the colours of the theme.
export function palette({ up, down, none }) {
  const looks = new Map();
  for (let step = -MOST_STEP; step <= MOST_STEP; step += 1) {
    const rgb = mixed(none, step > 0 ? up : down, WEIGHTS[Math.abs(step)]);
    looks.set(step, { rgb, back: textOf(rgb), ink: textOf(inkOn(rgb)) });
  }
  return looks;
}

// What each step stands for, in words.
export function stepText(step) {
  const size = Math.abs(step);
  if (!size) return say("unchanged");
  const way = step > 0 ? say("up") : say("down");
  if (size === 1) return say("{way}, less than {bound} %", { way, bound: BOUNDS[0] });
  if (size === MOST_STEP) return say("{way} {bound} % or more", { way, bound: BOUNDS.at(-1) });
  return say("{way} {from} to {to} %", { way, from: BOUNDS[size - 2], to: BOUNDS[size - 1] });
}
