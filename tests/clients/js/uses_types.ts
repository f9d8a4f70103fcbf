// What a user writes; the lines marked as errors have to be errors.
import { TickClient, addTraded, backoffMs, isFinal, isOlder, readMessage, traded } from "tickthrottle-client";
import type { Item, State } from "tickthrottle-client";

const states: State[] = [];
const ticks = new TickClient("ws://127.0.0.1:8000/v1/stream", {
  token: async () => "text",
  minIntervalMs: 4_000,
  onNothing: (keys) => console.log(keys.join()),
  onState: (state) => states.push(state),
  onRejected: (rejected) => rejected.map(({ key, code }) => `${key} ${code}`),
});
const stop: () => void = ticks.subscribe(["*"], (item: Item, window) => {
  const price: string = item.price;
  const end: number | null = window;
  const trades: number = item.trades;
  // @ts-expect-error A price is text, no number.
  const wrong: number = item.price;
});
ticks.subscribe("005930", (item) => item.price.length);
ticks.subscribe(new Set(["005930", "market:KOSPI"] as const), (item) => item.price.length);
ticks.subscribe("group:market:KOSPI", (group) => {
  const volume: string = group.volume;
  // @ts-expect-error A group has no price.
  group.price;
});
ticks.subscribe(["group:market:KOSPI", "group:*"], (group) => group.advancing + 1);
ticks.subscribe(["group:market:KOSPI", "005930"], (one) => {
  const text: string = "isin" in one ? one.price : one.volume;
  // @ts-expect-error It may be a group.
  one.price.length;
});
declare const keys: string[];
declare const oneOrMany: string | string[];
ticks.subscribe(keys, (one) => {
  const name: string = "isin" in one ? one.isin : one.group;
  // @ts-expect-error It may be a group.
  one.price.length;
});
ticks.subscribe(oneOrMany, (one) => one.trades);
// Who knows that no key is a group's says so.
ticks.subscribe(keys, (item: Item) => item.price.length);
// @ts-expect-error All keys are those of groups.
ticks.subscribe(["group:*"], (item: Item) => item.price.length);
const ageMs: number = (ticks.lastWindow ?? 0) - ticks.windowMs + (ticks.ageMs ?? 0);
ticks.bars("1m", "005930", (bar) => bar.close?.length, { last: 3 });
// @ts-expect-error No bars are of this interval.
ticks.bars("2m", ["005930"], () => {});
ticks.trades(["005930"], ({ number, missed, price }) => number - (missed ?? 0) + (price?.length ?? 0));
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
