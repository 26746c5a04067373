// From values to places and back.

/** A straight axis: `at` gives the place of a value, `value` the value of a place. */
export function linear([low, high], [from, to]) {
  const width = high - low || 1;
  return {
    at: (value) => from + ((value - low) / width) * (to - from),
    value: (place) => low + ((place - from) / (to - from || 1)) * width,
  };
}

/** Round marks of an axis, about as many as wanted, all between its ends. */
export function ticks(low, high, wanted = 5) {
  if (!(high > low)) return [low];
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * (1 - 1e-9));
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, k) => Number(((first + k) * step).toPrecision(12)));
}

export const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

/** The value at a place of a list, fractions of places too. */
export function between(list, place) {
  const low = Math.floor(clamp(place, 0, list.length - 1));
  const high = Math.min(low + 1, list.length - 1);
  return list[low] + (list[high] - list[low]) * (clamp(place, 0, list.length - 1) - low);
}

/** The place of a value in a rising list, as a fraction between two entries. */
export function placeIn(list, value) {
  if (value <= list[0]) return 0;
  for (let k = 1; k < list.length; k++) {
    if (value <= list[k]) return k - 1 + (value - list[k - 1]) / (list[k] - list[k - 1] || 1);
  }
  return list.length - 1;
}
