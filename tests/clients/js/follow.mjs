// Prints the first item of an instrument, as the installed package gives it.
import { TickClient } from "tickthrottle-client";

const [url, key] = process.argv.slice(2);
const ticks = new TickClient(url);
ticks.subscribe([key], (item) => {
  console.log(JSON.stringify([item.isin, item.price, item.seq]));
  ticks.close();
});
