// The browser's tab says by its icon and its title how things are, for who looks elsewhere.

import { phrase, say } from "../language.js";
import { told } from "./gateway_words.js";

const ICON = document.querySelector("link[rel=icon]");
const CALM = ICON.href;
const COLOURS = { warn: "%23b36b00", bad: "%23c62828" };
const WORDS = { warn: phrase("Warning"), bad: phrase("Trouble") };

const shape = (colour) =>
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24'%3E" +
  `%3Ccircle cx='12' cy='12' r='12' fill='${colour}'/%3E` +
  "%3Cpath d='M12 5v8M12 16.5v2' fill='none' stroke='white' stroke-width='3'/%3E%3C/svg%3E";

export function showInTab({ level, text }) {
  const word = WORDS[level];
  const calm = say("tickthrottle: operations");
  const title = word === undefined ? calm : `${say(word)}: ${told(text)} · ${calm}`;
  const icon = word === undefined ? CALM : shape(COLOURS[level]);
  if (document.title !== title) document.title = title;
  if (ICON.href !== icon) ICON.href = icon;
}
