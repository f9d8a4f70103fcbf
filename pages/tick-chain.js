// Checks the chain of windows that a client is sent (docs/spec/tick-v1-parts.md). tick.js
// loads it when it is asked to verify. Hashes need a page that the browser takes for safe:
// https, or this machine.

const DATA = '"data":[';
const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\]]/g;
const ITEM =
  /^(.*),"trades":(\d+)(?:,"volume":([\d.]+),"value":([\d.]+)(?:,"high":([\d.]+),"low":([\d.]+))?)?(?:,"day":\{[^{}]*\})?\}$/s;
const TRADE = /"price":([\d.]+),"size":([\d.]+)/;
const UPDATES = /"updates":"([a-z,]*)"/;
const SHORT = 16; // so much of a hash is sent where the rest is known
const PLACES = 36; // behind the point of a sum: a price and a size have 18 each
const UNKNOWN = "-";
const NOTHING = { trades: 0, volume: 0n, value: 0n };

export async function hashOf(text) {
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").slice(0, 43);
}

// The line of each item of a message: its trade as it was sent, and its sums.
export function linesOf(text) {
  const lines = [];
  TOKENS.lastIndex = text.indexOf(DATA) + DATA.length;
  let [depth, begin] = [0, 0];
  for (let token = TOKENS.exec(text); token !== null; token = TOKENS.exec(text)) {
    if (token[0] === "{" || token[0] === "[") {
      if (!depth) begin = token.index;
      depth += 1;
    } else if (token[0] === "}" || token[0] === "]") {
      depth -= 1;
      if (depth < 0) break;
      if (!depth) lines.push(lineOf(text.slice(begin, TOKENS.lastIndex)));
    }
  }
  return lines;
}

function lineOf(item) {
  const found = ITEM.exec(item);
  if (found === null) throw new Error(`item ${item.slice(0, 80)}: says no trades`);
  const [, body, trades, volume, ...others] = found;
  const sums = volume === undefined ? [trades] : [trades, volume, ...others];
  return `${body}} ${sums.map((one) => one ?? "").join(",")}`;
}

function units(text, places = PLACES) {
  const [whole, part = ""] = text.split(".");
  return BigInt(whole + part.padEnd(places, "0"));
}

function textOf(number) {
  if (number === null) return UNKNOWN;
  const digits = number.toString().padStart(PLACES + 1, "0");
  const part = digits.slice(-PLACES).replace(/0+$/, "");
  return digits.slice(0, -PLACES) + (part && `.${part}`);
}

const add = (one, two) => (one === null || two === null ? null : one + two);
const plus = (one, two) => ({
  trades: one.trades + two.trades,
  volume: add(one.volume, two.volume),
  value: add(one.value, two.value),
});
const said = ({ trades, volume, value }) => `${trades} ${textOf(volume)} ${textOf(value)}`;

function totalsOf(line) {
  const [trades, volume, value] = line.slice(line.lastIndexOf(" ") + 1).split(",");
  if (volume !== undefined) return { trades: Number(trades), volume: units(volume), value: units(value) };
  const trade = TRADE.exec(line);
  if (trades !== "1" || trade === null) return { trades: Number(trades), volume: null, value: null };
  const updates = UPDATES.exec(line);
  if (updates !== null && !updates[1].split(",").includes("volume")) return { ...NOTHING, trades: 1 };
  const value1 = units(trade[1], PLACES / 2) * units(trade[2], PLACES / 2);
  return { trades: 1, volume: units(trade[2]), value: value1 };
}

function linkOf(says) {
  const [window, trades, volume, value, digest] = says.split(" ");
  const number = (text) => (text === UNKNOWN ? null : units(text));
  if (digest === undefined) throw new Error("a link has less than five parts");
  return { says, window: Number(window), digest, totals: { trades: Number(trades), volume: number(volume), value: number(value) } };
}

export class ChainCheck {
  constructor() {
    this.place = null; // the newest window that was checked: epoch, offset, hash
    this.window = 0;
    this.takesAll = false;
    this.lose();
  }

  // Rows of before may be missing from what comes. `takesAll`: it takes each row of the stream.
  follow(takesAll) {
    this.takesAll = takesAll;
    this.lose();
  }

  lose() {
    this._rows = NOTHING;
    this._isWhole = false;
  }

  // What a snapshot, update or heartbeat says of the chain: null, or {state, epoch, after,
  // offset, hasRows, reason}; the state is begins, holds or broken.
  async take(text, message) {
    const { type, epoch, offset, window, chain } = message;
    const isUpdate = type === "update";
    const before = this.place;
    const hasRows = this.takesAll && this._isWhole && type !== "snapshot";
    try {
      const lines = isUpdate && this.takesAll ? linesOf(text) : [];
      this._rows = lines.map(totalsOf).reduce(plus, this._rows);
      if (chain === undefined) return null;
      const [told, ...all] = chain;
      if (before === null || before.epoch !== epoch || !all.length) return this._begin({ epoch, offset, hash: told }, window);
      const count = offset - before.offset;
      if (count <= 0) return null;
      if (all.length < count) throw new Error(`${count} windows went by, ${all.length} are told`);
      const links = all.slice(-count).map(linkOf);
      let place = before;
      for (const link of links) {
        const at = `${place.epoch} ${place.offset} ${place.hash}`;
        const hash = await hashOf(`${at}\n${epoch} ${place.offset + 1} ${link.says}`);
        place = { epoch, offset: place.offset + 1, hash };
      }
      if (told.length < SHORT || !place.hash.startsWith(told)) {
        throw new Error("its links do not give its hash: one is missing or altered");
      }
      const isOne = isUpdate && message.merged === undefined && links.length === 1;
      if (hasRows) await this._compare(links, isOne ? lines : null);
      const newest = Math.max(this.window, ...links.map((link) => link.window));
      if (isOne && window !== newest) throw new Error(`it says the window ${window}, its link ${newest}`);
      this.place = place;
      this.window = newest;
      this._rows = NOTHING;
      this._isWhole = type !== "snapshot" && (this._isWhole || (isUpdate && (message.merged ?? 1) <= links.length));
      return { state: "holds", epoch, after: before.offset, offset, hasRows: hasRows && isOne, reason: "" };
    } catch (error) {
      this.place = null;
      this.lose();
      return { state: "broken", epoch, after: before?.offset ?? offset, offset, hasRows, reason: error.message };
    }
  }

  async _compare(links, lines) {
    const [rows, books] = [this._rows, links.map((link) => link.totals).reduce(plus, NOTHING)].map(said);
    if (rows !== books) throw new Error(`its rows come to ${rows} (trades, volume, value), not ${books}`);
    if (lines !== null && (await hashOf(lines.sort().join("\n"))) !== links[0].digest) {
      throw new Error("its rows are not those that were published");
    }
  }

  _begin(place, window) {
    const before = this.place;
    // A part of a hash is nothing to go on from.
    this.place = place.hash.length > SHORT ? place : null;
    this.window = window ?? 0;
    this.lose();
    if (this.place === null) return null;
    const isSame = before?.epoch === place.epoch && before.offset === place.offset;
    if (isSame && before.hash === place.hash) return null;
    let reason = before === null ? "nothing was known before" : `what was known ends at ${before.offset} of epoch ${before.epoch}`;
    if (isSame) reason = "its hash is another one than before";
    const { epoch, offset } = place;
    return { state: isSame ? "broken" : "begins", epoch, after: offset, offset, hasRows: false, reason };
  }
}
