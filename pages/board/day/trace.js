// What the page has seen of an instrument's price since it opened: the lowest, the highest, and
// the newest windows, each with how high and low the price went in it. Pure.

const KEPT = 60;
const [WIDTH, HEIGHT] = [96, 22];

export class Trace {
  constructor() {
    this.low = Infinity;
    this.high = -Infinity;
    // Of the newest windows in which it traded, at most 60.
    this.prices = [];
    this.highs = [];
    this.lows = [];
  }

  // A window has come, of which `price` is the newest one. Its trades went so high and low;
  // NaN: none of them counts for the range.
  add(price, high = price, low = price) {
    if (!Number.isFinite(price)) return;
    this.widen(high, low);
    const [top, end] = Number.isNaN(high) ? [price, price] : [Math.max(high, price), Math.min(low, price)];
    for (const [values, value] of [[this.prices, price], [this.highs, top], [this.lows, end]]) {
      values.push(value);
      if (values.length > KEPT) values.shift();
    }
  }

  // Trades have come late: no place of the line is theirs.
  widen(high, low) {
    if (Number.isNaN(high)) return;
    this.low = Math.min(this.low, low);
    this.high = Math.max(this.high, high);
  }
}

// A line through the prices as an SVG path in a box of 96 by 22; "" for less than two. It
// goes up and down to what was touched within a window.
export function sparkPath({ prices, highs, lows }) {
  if (prices.length < 2) return "";
  const low = Math.min(...lows);
  const span = Math.max(...highs) - low;
  const step = WIDTH / (prices.length - 1);
  const points = prices.flatMap((price, place) => {
    const x = (step * place).toFixed(1);
    const reached = highs[place] === lows[place] ? [price] : [highs[place], lows[place], price];
    return reached.map((each) => {
      const y = span ? HEIGHT - 2 - ((HEIGHT - 4) * (each - low)) / span : HEIGHT / 2;
      return `${x},${y.toFixed(1)}`;
    });
  });
  return `M${points.join("L")}`;
}
