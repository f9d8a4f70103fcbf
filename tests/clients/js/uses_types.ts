// What a user writes; the lines marked as errors have to be errors.
import { TickClient, addTraded, backoffMs, isFinal, isOlder, readMessage, traded } from "tickthrottle-client";
import type { Item, State } from "tickthrottle-client";

const states: State[] = [];
const ticks = new TickClient("ws://127.0.0.1:8000/v1/stream", {
  token: async () => "text",
  onState: (state) => states.push(state),
  onRejected: (rejected) => rejected.map(({ key, code }) => `${key} ${code}`),
});
const stop: () => void = ticks.subscribe(["*"], (item: Item, window) => {
  const price: string = item.price;
  const end: number | null = window;
  // @ts-expect-error A price is text, no number.
  const wrong: number = item.price;
});
// @ts-expect-error Keys are a list.
ticks.subscribe(1, () => {});
const known: Item | undefined = ticks.items.get("KR7005930003");
if (known) isOlder(known, { time: 1, seq: 2 });
const sums = addTraded(known ? traded(known) : null, { trades: 1, volume: "1", value: "2", high: "2", low: "2" });
const volume: string | undefined = sums?.volume;
// @ts-expect-error Sums may not be known.
sums.high;
const delay: number = backoffMs(1) + (isFinal(1000) ? 1 : 0);
const message = readMessage("{}");
const kind: string = message.type;
if (message.type === "update") {
  const day: string | undefined = message.data[0].day?.volume;
  // @ts-expect-error An update is of no operation.
  message.op;
}
// @ts-expect-error No message has this type.
if (message.type === "updates") stop();
stop();
ticks.close();
