// Performance measures of the page. An observer sees all of them; the browser's own list
// keeps the newest hundred or fewer.

const KEPT = 100;
const counts = new Map();

// Note that something took this long, and ends now.
export function noteMeasure(name, duration) {
  const count = (counts.get(name) ?? 0) + 1;
  counts.set(name, count);
  if (count % KEPT === 0) performance.clearMeasures(name);
  const end = performance.now();
  performance.measure(name, { start: Math.max(0, end - duration), end });
}

// Have a function called when the frame that is being drawn is on the screen: a message to
// oneself comes after its style, layout and paint.
export function afterFrame(callback) {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = callback;
  port2.postMessage(null);
}
