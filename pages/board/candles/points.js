// Points of a chart. Pure.

// Without lists of their names: of each window some thousand points are compared.
function isSame(one, other) {
  for (const name in one) if (one[name] !== other[name]) return false;
  for (const name in other) if (!(name in one)) return false;
  return true;
}

// The place from which points differ from those that are drawn; null if more than the last
// one that is drawn differs, so that all have to be drawn anew.
export function drawnFrom(drawn, points) {
  const last = drawn.length - 1;
  if (last < 0 || points.length < drawn.length || drawn[last].time !== points[last].time) return null;
  for (let place = 0; place < last; place += 1) {
    if (!isSame(drawn[place], points[place])) return null;
  }
  return points.length === drawn.length && isSame(drawn[last], points[last]) ? points.length : last;
}
