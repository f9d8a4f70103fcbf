// Which instruments are shown on both sides: those that trade most, and no hopping. Pure.

const HALF_LIFE_MS = 10_000;
const REMEMBERED = 1_000;

export class ActiveInstruments {
  // `places` instruments are shown, each in its place until it has become much quieter.
  constructor(places) {
    this.shown = [];
    this._places = places;
    this._counts = new Map(); // ISIN -> trades, old ones counting less
    this._agedMs = null;
  }

  add(isin, trades = 1) {
    this._counts.set(isin, (this._counts.get(isin) ?? 0) + trades);
  }

  // An instrument leaves when twice as many others as there are places trade more.
  choose(nowMs) {
    this._age(nowMs);
    const order = [...this._counts].sort(([, a], [, b]) => b - a).map(([isin]) => isin);
    const stay = new Set(order.slice(0, 2 * this._places));
    const next = order.filter((isin) => !this.shown.includes(isin));
    for (let place = 0; place < this._places; place += 1) {
      const isin = this.shown[place];
      if (isin !== undefined && stay.has(isin)) continue;
      const other = next.shift();
      if (other !== undefined) this.shown[place] = other;
    }
    for (const isin of order.slice(REMEMBERED)) this._counts.delete(isin);
    return this.shown;
  }

  _age(nowMs) {
    const passedMs = nowMs - (this._agedMs ?? nowMs);
    this._agedMs = nowMs;
    const factor = 2 ** (-passedMs / HALF_LIFE_MS);
    for (const [isin, count] of this._counts) this._counts.set(isin, count * factor);
  }
}
