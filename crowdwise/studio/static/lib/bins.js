// A density of all examples: counts in cells become pixels, a rectangle on the picture becomes a range of values.

/**
 * Pixels of a picture of nx times ny cells, its first row on top; counts[row * nx + column], row 0 at the bottom.
 * Few examples stay visible beside many: the colour follows the logarithm. Empty cells are transparent.
 */
export function pixels(counts, nx, ny, table) {
  const steps = table.length / 3;
  const most = counts.reduce((a, b) => Math.max(a, b), 0);
  const unit = most > 0 ? (steps - 1) * 0.82 / Math.log1p(most) : 0;
  const out = new Uint8ClampedArray(4 * nx * ny);
  for (let row = 0; row < ny; row++) {
    for (let column = 0; column < nx; column++) {
      const value = counts[row * nx + column];
      if (!value) continue;
      const step = Math.round((steps - 1) * 0.18 + Math.log1p(value) * unit);
      const place = 4 * ((ny - 1 - row) * nx + column);
      out.set(table.subarray(3 * step, 3 * step + 3), place);
      out[place + 3] = 255;
    }
  }
  return out;
}

/** Counts of values in cells; values outside of the axes are left out, the upper ends belong to the last cell. */
export function binned(xs, ys, [x0, x1], [y0, y1], nx, ny) {
  const counts = new Uint32Array(nx * ny);
  for (let k = 0; k < xs.length; k++) {
    const column = Math.floor(((xs[k] - x0) / (x1 - x0)) * nx);
    const row = Math.floor(((ys[k] - y0) / (y1 - y0)) * ny);
    if (xs[k] < x0 || xs[k] > x1 || ys[k] < y0 || ys[k] > y1) continue;
    counts[Math.min(row, ny - 1) * nx + Math.min(column, nx - 1)]++;
  }
  return counts;
}

/** The rectangle between two corners, in values; null if it is too small to be meant. */
export function brushed(from, to, across, up, least = 4) {
  if (Math.abs(from.x - to.x) < least && Math.abs(from.y - to.y) < least) return null;
  const xs = [across.value(from.x), across.value(to.x)].sort((a, b) => a - b);
  const ys = [up.value(from.y), up.value(to.y)].sort((a, b) => a - b);
  return { x0: xs[0], x1: xs[1], y0: ys[0], y1: ys[1] };
}

/** How many of the counted examples are in cells whose middle is in a rectangle. */
export function countIn(counts, nx, ny, [x0, x1], [y0, y1], box) {
  let total = 0;
  for (let row = 0; row < ny; row++) {
    const y = y0 + ((row + 0.5) / ny) * (y1 - y0);
    if (y < box.y0 || y > box.y1) continue;
    for (let column = 0; column < nx; column++) {
      const x = x0 + ((column + 0.5) / nx) * (x1 - x0);
      if (x >= box.x0 && x <= box.x1) total += counts[row * nx + column];
    }
  }
  return total;
}
