// Decimals as text, compared digit by digit: what crosses a price is never decided by a
// binary fraction. Pure.

// As the exchange's prices are: at most 18 digits before and after the point.
const FORM = /^(\d{1,18})(?:\.(\d{1,18}))?$/;
const DIGITS = 18;
const ONE = 10n ** BigInt(DIGITS);

export const isDecimal = (text) => typeof text === "string" && FORM.test(text);

// How many of 10^-18 a decimal is.
function units(text) {
  const [, whole, rest = ""] = FORM.exec(text);
  return BigInt(whole + rest.padEnd(DIGITS, "0"));
}

const signOf = (number) => (number > 0n ? 1 : number < 0n ? -1 : 0);

// 1 if the first is greater, -1 if it is smaller, 0 if both are as great.
export const compareDecimals = (one, other) => signOf(units(one) - units(other));

// 1 if a price is at least so many per cent above another, -1 if it is as far below, else 0.
export function sideOfChange(price, reference, percent) {
  const change = (units(price) - units(reference)) * 100n * ONE;
  const bound = units(percent) * units(reference);
  return change >= bound ? 1 : change <= -bound ? -1 : 0;
}
