// The instruments a visitor has starred. Pure; what is kept is a list of ISINs, as JSON.

export const ISIN = /^[A-Z]{2}[A-Z0-9]{9}[0-9]$/;

// Whatever the browser has kept: another hand may have been at it.
export function parseWatchList(text) {
  try {
    const kept = JSON.parse(text ?? "[]");
    return new Set(Array.isArray(kept) ? kept.filter((isin) => ISIN.test(isin)) : []);
  } catch {
    return new Set();
  }
}

// A new set, with the instrument in it if it was not.
export function toggled(isins, isin) {
  const changed = new Set(isins);
  if (!changed.delete(isin)) changed.add(isin);
  return changed;
}
