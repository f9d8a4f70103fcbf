// What the page has seen of an issue's price since it opened: the lowest, the highest, and
// the newest windows. Pure.

const KEPT = 60;
const [WIDTH, HEIGHT] = [96, 22];

export class Trace {
  constructor() {
    this.low = Infinity;
    this.high = -Infinity;
    this.prices = []; // of the newest windows in which it traded, at most 60
  }

  add(price) {
    if (!Number.isFinite(price)) return;
    this.low = Math.min(this.low, price);
    this.high = Math.max(this.high, price);
    this.prices.push(price);
    if (this.prices.length > KEPT) this.prices.shift();
  }
}

// A line through the prices as an SVG path in a box of 96 by 22; "" for less than two.
// Fewer windows than are kept begin at the right, where the newest is.
export function sparkPath({ prices }) {
  if (prices.length < 2) return "";
  const low = Math.min(...prices);
  const span = Math.max(...prices) - low;
  const step = WIDTH / (KEPT - 1);
  const from = WIDTH - step * (prices.length - 1);
  const points = prices.map((price, place) => {
    const y = span ? HEIGHT - 2 - ((HEIGHT - 4) * (price - low)) / span : HEIGHT / 2;
    return `${(from + step * place).toFixed(1)},${y.toFixed(1)}`;
  });
  return `M${points.join("L")}`;
}
