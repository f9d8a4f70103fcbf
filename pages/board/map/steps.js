// How keys go from tile to tile. Pure: tiles are boxes {x, y, width, height}.

// Each direction as a look to the right, with coordinates exchanged: [from, to] along it,
// and across it.
const LOOKS = {
  ArrowRight: ({ x, y, width, height }) => [x, x + width, y, y + height],
  ArrowLeft: ({ x, y, width, height }) => [-x - width, -x, y, y + height],
  ArrowDown: ({ x, y, width, height }) => [y, y + height, x, x + width],
  ArrowUp: ({ x, y, width, height }) => [-y - height, -y, x, x + width],
};

// The place of the tile that a key leads to, the same one at an edge, null for another
// key. Home is the first, the largest of the largest group; End is the last.
export function tileAfter(key, place, tiles) {
  if (key === "Home") return 0;
  if (key === "End") return tiles.length - 1;
  const look = LOOKS[key];
  if (look === undefined || !tiles.length) return null;
  const [, edge, low, high] = look(tiles[place]);
  const middle = (low + high) / 2;
  let best = place;
  let least = Infinity;
  tiles.forEach((tile, other) => {
    const [from, , near, far] = look(tile);
    if (other === place || from < edge) return;
    // What lies straight ahead comes before what lies aside, however near.
    const aside = Math.max(0, near - middle, middle - far);
    const distance = from - edge + 4 * aside;
    if (distance < least) [best, least] = [other, distance];
  });
  return best;
}
