// Which markets and sectors a visitor wants to see. Pure: sets of names; an empty one
// wants them all.

export const isWanted = ({ markets, sectors }, instrument) => isIn(markets, instrument?.market) && isIn(sectors, instrument?.sector);

const isIn = (names, name) => !names.size || names.has(name);

// The sectors there are, by name, each with the count of its instruments.
export function sectorsOf(instruments) {
  const counts = new Map();
  for (const { sector } of instruments) {
    if (sector) counts.set(sector, (counts.get(sector) ?? 0) + 1);
  }
  return [...counts].sort(([a], [b]) => a.localeCompare(b, "ko"));
}
