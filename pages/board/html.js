// Markup as tagged templates, and what is not drawn again.

import htm from "htm";
import { Component, h } from "preact";

// Elements are made anew each time: one that is used again holds the page it was first a part of,
// which holds others, and so on back to when the page was opened.
export const html = htm.bind(function create(...parts) {
  this[0] = 3; // what keeps htm from keeping it
  return h(...parts);
});

// Whether one of the properties is another one than before.
export const isOther = (next, known) => Object.keys(next).some((name) => next[name] !== known[name]);

// A component that is not drawn again with the same properties: `draw` goes by nothing else. In
// another language a page is another one, which draws it anew.
export const calm = (draw) =>
  class extends Component {
    shouldComponentUpdate(next) {
      return isOther(next, this.props);
    }

    render(properties) {
      return draw(properties);
    }
  };
