// Markup as tagged templates, with the calm reading of Preact's parts.

import htm from "htm";
import { h } from "preact";

// Elements are made anew each time: one that is used again holds the page it was first a part of,
// which holds others, and so on back to when the page was opened.
export const html = htm.bind(function create(...parts) {
  this[0] = 3; // what keeps htm from keeping it
  return h(...parts);
});
