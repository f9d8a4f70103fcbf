// Polling beside pushing, for one instrument: how old what each of them shows is. Pure.
//
// A price is stale from the moment a newer one was made until the newer one is shown.
// That moment is known only afterwards, from the trade itself, so the past is drawn with
// what is known now: pushing is behind too, by up to a window.

import { isOlder } from "../tick.js";

const KEPT_MS = 5 * 60_000;

// When a trade was made, by the server's clock. A trade lies within its window by the
// log's clock; the exchange's stamp says where, unless it is of another day (a tape).
export function madeMs(item, windowMs, window) {
  const stampMs = item.time / 1000;
  if (window === null) return stampMs;
  return stampMs >= window - windowMs && stampMs < window ? stampMs : window;
}

export class Staleness {
  constructor(channels) {
    this._trades = []; // {item, atMs}, older first
    this._shown = new Map(channels.map((channel) => [channel, []])); // {item, atMs}
  }

  // A channel shows an item from now on; it was made at `madeMs`.
  show(channel, item, nowMs, madeMs) {
    const shown = this._shown.get(channel);
    const last = shown.at(-1)?.item;
    if (last && !isOlder(last, item)) return;
    shown.push({ item, atMs: nowMs });
    this._know(item, Math.min(nowMs, madeMs));
    this._forget(nowMs - KEPT_MS);
  }

  // For how long at this moment a newer price had been known; null before the first.
  at(channel, timeMs) {
    const showing = this._shown.get(channel).findLast(({ atMs }) => atMs <= timeMs);
    if (showing === undefined) return null;
    const newer = this._trades.find(({ item }) => isOlder(showing.item, item));
    return newer === undefined ? 0 : Math.max(0, timeMs - newer.atMs);
  }

  // [{timeMs, ms}] over a span, in steps.
  series(channel, fromMs, toMs, stepMs) {
    const points = [];
    for (let timeMs = fromMs; timeMs <= toMs; timeMs += stepMs) {
      const ms = this.at(channel, timeMs);
      if (ms !== null) points.push({ timeMs, ms });
    }
    return points;
  }

  _know(item, atMs) {
    const place = this._trades.findLastIndex((trade) => !isOlder(item, trade.item));
    const known = this._trades[place]?.item;
    if (known && !isOlder(known, item)) return;
    this._trades.splice(place + 1, 0, { item, atMs });
  }

  // What was shown at the beginning of what is kept stays.
  _forget(beforeMs) {
    let oldest = null;
    for (const shown of this._shown.values()) {
      while (shown.length > 1 && shown[1].atMs < beforeMs) shown.shift();
      if (shown.length && (oldest === null || isOlder(shown[0].item, oldest))) {
        oldest = shown[0].item;
      }
    }
    while (this._trades.length && oldest && isOlder(this._trades[0].item, oldest)) {
      this._trades.shift();
    }
  }
}

// {mean, most} in milliseconds of a series, null of an empty one.
export function summary(points) {
  if (!points.length) return null;
  const all = points.map(({ ms }) => ms);
  return { mean: all.reduce((sum, ms) => sum + ms, 0) / all.length, most: Math.max(...all) };
}
