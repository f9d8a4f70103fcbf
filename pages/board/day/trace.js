// How an instrument's price has gone in the newest half hour: closes of minutes, and the windows
// since the page opened, each with how high and low the price went in it. Pure.

const KEPT = 60;
const ROOMY = 45; // so few are left where there were too many: it is not looked through for each
const SPAN_MS = 30 * 60_000;
const MINUTE_MS = 60_000;
const [WIDTH, HEIGHT, EDGE] = [960, 220, 20];

const minuteOf = (timeMs) => Math.ceil(timeMs / MINUTE_MS); // a window is of that which it ends in

export class Trace {
  // `number` tells traces that begin at once apart: their places are looked through in different
  // windows.
  constructor(number = 0) {
    // The lowest and highest price that the page knows of.
    this.low = Infinity;
    this.high = -Infinity;
    // Of at most 60 places, the oldest first.
    this.times = [];
    this.prices = [];
    this.highs = [];
    this.lows = [];
    this._lists = [this.times, this.prices, this.highs, this.lows];
    this._most = KEPT - (number % (KEPT - ROOMY));
  }

  // A window has come, of which `price` is the newest one. Its trades went so high and low;
  // NaN: none of them counts for the range.
  add(timeMs, price, high = price, low = price) {
    if (!Number.isFinite(price)) return;
    this.widen(high, low);
    // What is known from before by a clock that is ahead is older all the same; of one time the
    // newer price counts.
    while (this.times.at(-1) >= timeMs) for (const list of this._lists) list.pop();
    const [top, end] = Number.isNaN(high) ? [price, price] : [Math.max(high, price), Math.min(low, price)];
    this.times.push(timeMs);
    this.prices.push(price);
    this.highs.push(top);
    this.lows.push(end);
    this._shorten();
  }

  // Trades have come late: no place of the line is theirs.
  widen(high, low) {
    if (Number.isNaN(high)) return;
    this.low = Math.min(this.low, low);
    this.high = Math.max(this.high, high);
  }

  // Closes of minutes, the last one's end is `endMs`; null: no trade. A minute of which
  // something is known stays as it is.
  fill(endMs, closes) {
    closes.forEach((close, number) => {
      const timeMs = endMs - MINUTE_MS * (closes.length - 1 - number);
      const place = this.times.findIndex((time) => minuteOf(time) >= minuteOf(timeMs));
      if (close === null || minuteOf(this.times[place]) === minuteOf(timeMs)) return;
      this._put(place < 0 ? this.times.length : place, timeMs, close, close, close);
      this.widen(close, close);
    });
    this._shorten();
  }

  _put(place, ...values) {
    this._lists.forEach((list, number) => list.splice(place, 0, values[number]));
  }

  // Once there are too many places, of each of the oldest minutes the last one stays.
  _shorten() {
    const { times } = this;
    while (times[0] < times.at(-1) - SPAN_MS) for (const list of this._lists) list.shift();
    if (times.length <= this._most) return;
    this._most = KEPT;
    let surplus = times.length - ROOMY;
    let kept = 0;
    for (let place = 0; place < times.length; place += 1) {
      if (surplus > 0 && minuteOf(times[place]) === minuteOf(times[place + 1])) {
        surplus -= 1;
        continue;
      }
      for (const list of this._lists) list[kept] = list[place];
      kept += 1;
    }
    for (const list of this._lists) list.length = kept;
  }
}

// A line through the prices as an SVG path in a box of 960 by 220, over the time that they are
// of; "" for less than two. It goes up and down to what was touched within a window. Whole
// numbers, and no lists: it is made for each row in view at each window.
export function sparkPath({ times, prices, highs, lows }) {
  const [beganMs, spanMs] = [times[0], times.at(-1) - times[0]];
  if (!(spanMs > 0)) return "";
  const low = Math.min(...lows);
  const span = Math.max(...highs) - low;
  const y = (price) => (span ? Math.round(HEIGHT - EDGE - ((HEIGHT - 2 * EDGE) * (price - low)) / span) : HEIGHT / 2);
  let path = "M";
  for (let place = 0; place < prices.length; place += 1) {
    if (place) path += "L";
    path += `${Math.round((WIDTH * (times[place] - beganMs)) / spanMs)},`;
    path += highs[place] === lows[place] ? y(prices[place]) : `${y(highs[place])}V${y(lows[place])}V${y(prices[place])}`;
  }
  return path;
}
