// Prints what callbacks got, one that was there from the beginning and one that came after
// all frames, while nothing was painted until then: as in a hidden page.
import { TickClient } from "./tick.mjs";

const [url, key] = process.argv.slice(2);
let paint = () => {};
globalThis.requestAnimationFrame = (later) => (paint = later);
const first = [];
const ticks = new TickClient(url, {
  onMessage(message) {
    if (message.type === "snapshot") paint();
    if (message.type !== "heartbeat") return;
    paint();
    const second = [];
    ticks.subscribe([key], (...told) => second.push(told));
    paint();
    ticks.close();
    console.log(JSON.stringify({ first, second }));
  },
});
ticks.subscribe([key], (...told) => first.push(told));
