// Subscribes as the first line says, and prints what the client tells, a line each. Tokens
// are asked for with a line, and come as one.
import { createInterface } from "node:readline";

import { TickClient } from "./tick.mjs";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const [url, calls, hasToken, tokenFails, hearsNothing] = JSON.parse((await lines.next()).value);
const tell = (...told) => console.log(JSON.stringify(told));
const token = () => {
  tell("token");
  if (tokenFails) throw new Error("no token");
  return nextLine();
};
const nextLine = async () => {
  return (await lines.next()).value;
};

// Reconnects come soon: the longest delay would be half a minute.
Math.random = () => 0.02;
console.warn = (text) => tell("warned", text);
const ticks = new TickClient(url, {
  onNothing: hearsNothing ? (keys) => keys.forEach((key) => tell("nothing", key)) : undefined,
  token: hasToken ? token : undefined,
  onState: (state) => tell("state", state),
  onRejected: (rejected) => rejected.forEach(({ key, code }) => tell("rejected", key, code)),
  onStatus: ({ status, expected_price, missed }) => tell("status", status, expected_price ?? null, missed),
  onMessage(message) {
    if (message.type === "ack") tell("held", message.count);
    if (ticks.position !== null) tell("position", ticks.position.offset);
  },
});
for (const [name, ...values] of calls) {
  if (name === "subscribe") ticks.subscribe(values[0], (item) => tell("item", item.isin, item.price));
  else ticks.bars("1m", values[0], (bar) => tell("bar", bar.isin), { last: values[1] });
}
