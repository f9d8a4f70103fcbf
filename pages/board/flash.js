// Lights cells up for a moment. All that are lit in a frame go out in one frame: an
// animation of each would have the main thread draw frames for as long as it fades, which
// cost a third of all that a window costs.

const LIT_MS = 900;
const stillness = matchMedia("(prefers-reduced-motion: reduce)");

let batch = null; // cells that are lit in this frame
const lit = new Map(); // cell -> the batch it goes out with

// The style sheet says what data-lit ("up", "down") looks like.
export function light(cell, kind) {
  if (stillness.matches) return;
  if (batch === null) {
    const cells = (batch = []);
    queueMicrotask(() => (batch = null));
    setTimeout(() => cells.forEach((each) => lit.get(each) === cells && douse(each)), LIT_MS);
  }
  batch.push(cell);
  lit.set(cell, batch);
  cell.setAttribute("data-lit", kind);
}

export function douse(cell) {
  if (lit.delete(cell)) cell.removeAttribute("data-lit");
}
