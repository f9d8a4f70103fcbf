// Drives tick.js for the conformance kit: node tick_js.mjs [PATH OF tick.js].
// The form of the lines is in docs/conformance.md.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { resolve } from "node:path";

const file = pathToFileURL(resolve(process.argv[2] ?? "pages/tick.js"));
const { TickClient, traded, addTraded } = await import(file);
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

function hold({ url, keys, last, min_interval_ms: minIntervalMs, fields, tokens, verify }) {
  const held = { comes_back: true, bars: {}, trades: {}, rejected: {}, sums: {}, status_news: {} };
  const counts = { messages: 0, resets: 0, bars_missed: 0 };
  const ends = new Map();
  const left = [...(tokens ?? [])];
  const token = tokens && (() => (left.length > 1 ? left.shift() : left[0]));
  const client = new TickClient(url, {
    ...(token && { token }),
    minIntervalMs,
    fields,
    verify,
    onState: (state) => (held.comes_back = state !== "closed"),
    onMessage: () => (counts.messages += 1),
    onReset: () => (counts.resets += 1),
    onBarsMissed: () => (counts.bars_missed += 1),
    onRejected: (rejected) => rejected.forEach(({ key, code }) => (held.rejected[key] = code)),
    onNothing: () => {},
    onStatus: (status) => (held.status_news[status.isin] ??= []).push(status),
    onChain: ({ state, epoch, offset, hasRows }) => (held.chain = { state, epoch, offset, rows: hasRows }),
  });
  const add = (item) => {
    if (!item.trades || item.group) return;
    const before = held.sums[item.isin];
    held.sums[item.isin] = before === undefined ? traded(item) : addTraded(before, traded(item));
  };
  const addBar = (bar) => ((held.bars[`${bar.interval}:${bar.isin}`] ??= {})[bar.start] = bar);
  const follow = (all, newest = 1) => {
    const items = all.filter((key) => !/^(bars|trades):/.test(key));
    const end = items.length && client.subscribe(items, add);
    items.forEach((key) => ends.set(key, end));
    for (const key of all) {
      const [kind, first, second] = key.split(":");
      if (kind === "bars") ends.set(key, client.bars(first, second, addBar, { last: newest }));
      const put = (entry) => (held.trades[entry.isin] ??= []).push(entry);
      if (kind === "trades") ends.set(key, client.trades(first, put));
    }
  };
  follow(keys, last);
  return {
    follow,
    unfollow: (some) => some.forEach((key) => ends.get(key)()),
    end: () => client.close(),
    report: () => ({
      ...held,
      ...counts,
      items: Object.fromEntries(client.items),
      groups: Object.fromEntries(client.groups),
      statuses: Object.fromEntries(client.statuses),
      members: Object.fromEntries(client.members),
      position: client.position,
      bars: Object.fromEntries(
        Object.entries(held.bars).map(([name, bars]) => [name, Object.values(bars)]),
      ),
    }),
  };
}

say({
  client: "tick.js",
  says: [
    ...["items", "groups", "bars", "trades", "statuses", "sums", "members"],
    ...["position", "rejected", "resets", "bars_missed", "days", "chain", "status_news"],
  ],
  takes: ["min_interval_ms", "fields", "tokens", "verify"],
});
let held = null;
for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line);
  if (order.do === "report") say(held.report());
  else if (order.do === "also") held.follow(order.keys, order.last);
  else if (order.do === "unfollow") held.unfollow(order.keys);
  else {
    held?.end();
    held = order.do === "follow" ? hold(order) : null;
  }
}
process.exit(0);
