// Which of many rows are in the document, and how keys move among them. Pure.

const OVERSCAN = 2;
const STEP = 4;

// [first, end) of the rows to draw: those in view, and a few around them. Both go by steps
// of a few rows: a table that is laid out anew for each row cannot keep up with a finger.
export function visibleRange({ count, rowHeight, scrollTop, viewHeight }) {
  const first = Math.floor((scrollTop / rowHeight - OVERSCAN) / STEP) * STEP;
  const end = Math.ceil(((scrollTop + viewHeight) / rowHeight + OVERSCAN) / STEP) * STEP;
  const bound = (index) => Math.min(count, Math.max(0, index));
  return { first: bound(Math.min(first, count - 1)), end: bound(end) };
}

// Where to scroll so that a row is in view: nowhere, if it is.
export function scrollTopFor(index, { rowHeight, scrollTop, viewHeight }) {
  const top = index * rowHeight;
  if (top < scrollTop) return top;
  return Math.max(scrollTop, top + rowHeight - viewHeight);
}

// The row a key leads to, null for a key that leads nowhere. -1: there is none yet.
export function rowAfter(key, index, { count, rowHeight, viewHeight }) {
  const page = Math.max(1, Math.floor(viewHeight / rowHeight) - 1);
  const wanted = {
    ArrowDown: index + 1,
    ArrowUp: index - 1,
    PageDown: index + page,
    PageUp: index - page,
    Home: 0,
    End: count - 1,
  }[key];
  if (wanted === undefined || !count) return null;
  return Math.min(count - 1, Math.max(0, wanted));
}
